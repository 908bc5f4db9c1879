import type { Deadline } from '../../client/deadline.ts'
import type { DeploymentAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import type { Github } from '../github/github.ts'
import { formatDuration } from '../parse/duration.ts'
import { requestFailure } from '../report/request-failure.ts'
import type { SweptPreview } from './report.ts'

/** A deployment that is named like a preview. */
export type Candidate = { deployment: DeploymentAnswer; name: string; pullRequest: number }

export type Judgement = Pick<SweptPreview, 'verdict' | 'why'>

/**
 * Whether a preview of this repository has to go, as things are right now. Its age is that of its last revision: one that is pushed to
 * stays. What cannot be told keeps it. Throws an `ActionFailure` when GitHub or the control plane does not answer.
 */
export async function judge({
  candidate: { deployment, name, pullRequest },
  ttlMs,
  github,
  deadline: { signal },
  deps: { controlPlane, effects },
}: {
  candidate: Candidate
  ttlMs: number
  github: Pick<Github, 'getPullRequest'>
  deadline: Pick<Deadline, 'signal'>
  deps: Pick<Deps, 'controlPlane' | 'effects'>
}): Promise<Judgement> {
  const found = await github.getPullRequest(pullRequest, signal).catch((error: unknown) => {
    throw requestFailure(error, 'The sweep')
  })
  if (found === null) return { verdict: 'unproven', why: `this repository has no pull request ${pullRequest}` }
  if (found.state === 'closed') return { verdict: 'to remove', why: 'the pull request is closed' }
  const lastAt = await lastRevisionAt()
  if (lastAt === undefined)
    return { verdict: 'kept', why: 'the pull request is open, and the age of the last revision is not known' }
  const age = effects.now() - lastAt
  if (age <= ttlMs) return { verdict: 'kept', why: `the pull request is open, and the last revision is ${formatAge(age)} old` }
  return { verdict: 'to remove', why: `the last revision is ${formatAge(age)} old, and preview-ttl is ${formatAge(ttlMs)}` }

  async function lastRevisionAt(): Promise<number | undefined> {
    try {
      const [last] = await controlPlane.listRevisions({ deploymentId: deployment.id, max: 1, signal })
      const at = Date.parse(last?.created_at ?? deployment.created_at ?? '')
      return Number.isNaN(at) ? undefined : at
    } catch (error) {
      throw requestFailure(error, `Reading the last revision of '${name}'`)
    }
  }
}

function formatAge(milliseconds: number): string {
  const days = milliseconds / 86_400_000
  return days < 2 ? formatDuration(Math.max(0, milliseconds)) : `${Math.floor(days)} days`
}
