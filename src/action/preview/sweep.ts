import { type Deadline, startDeadline } from '../../client/deadline.ts'
import type { DeploymentAnswer } from '../../contract/answers.ts'
import type { Deps } from '../deps.ts'
import type { Github } from '../github/github.ts'
import type { SweepInputs } from '../inputs.ts'
import type { Status } from '../registry.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { type Candidate, judge, type Judgement } from './judge.ts'
import { commonPart, pullRequestOf } from './name.ts'
import { findOwner, type Owner } from './proof.ts'
import { awaitGone, requestRemoval } from './remove.ts'
import { countSwept, type SweptPreview } from './report.ts'

/** One preview on its way through the sweep: `going` once the service was asked to delete it. */
type Swept = Candidate & SweptPreview & { going: boolean; failure?: ActionFailure }

/**
 * Removes the previews of this repository whose pull request is closed, or whose last revision is older than `preview-ttl`. Everything
 * is read and judged before anything is removed; what cannot be proved to be this repository's is left alone. Returns `removed`,
 * `unchanged` (nothing had to go) or `planned`; throws an `ActionFailure`, also when some could not be removed.
 */
export async function sweep(inputs: SweepInputs, deps: Deps): Promise<Status> {
  const { effects, journal, log, signal } = deps
  const { baseName, ttlMs } = inputs.sweep
  const github = githubOf(deps)
  const deadline = startDeadline({ timeoutMs: inputs.timeoutMs, parent: signal, effects })
  let swept: Swept[] = []
  const tell = (): void =>
    journal.setSweep(swept.map(({ name, pullRequest, verdict, why }) => ({ name, pullRequest, verdict, why })))
  try {
    const candidates = await findCandidates(inputs, deadline, deps)
    const { length } = candidates
    log.info(`Found ${length} ${length === 1 ? 'deployment' : 'deployments'} named like the previews of '${baseName}'.`)
    const owner = findOwner({ inputs, github, signal: deadline.signal })
    swept = await judgeAll({ candidates, owner, ttlMs, github, deadline, deps })
    tell()
    log.group('Previews', swept.map(lineOf))
    if (inputs.dryRun) {
      log.info('dry-run: nothing was changed.')
      return 'planned'
    }
    for (const one of swept.filter(({ verdict }) => verdict === 'to remove')) {
      await attempt(one, async () => await begin({ one, ttlMs, github, deadline, deps }))
      tell()
    }
    for (const one of swept.filter(({ going }) => going)) {
      await attempt(one, async () => {
        await awaitGone(one.deployment, deadline, deps)
        one.verdict = 'removed'
        log.info(`Removed '${one.name}': ${one.why}.`)
      })
      tell()
    }
  } finally {
    tell()
    deadline.stop()
  }
  const failed = swept.filter(({ verdict }) => verdict === 'failed')
  if (failed.length > 0) throw notAllRemoved(failed, swept)
  return swept.some(({ verdict }) => verdict === 'removed') ? 'removed' : 'unchanged'

  /** One that cannot be removed does not keep the others; a cancellation does. */
  async function attempt(one: Swept, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (signal.aborted) throw error
      const failure = requestFailure(error, `Removing '${one.name}'`)
      Object.assign(one, { verdict: 'failed', why: failure.message, going: false, failure })
      log.warning(`'${one.name}' could not be removed: ${failure.message}`)
    }
  }
}

function githubOf({ github }: Pick<Deps, 'github'>): Github {
  if (github !== undefined) return github
  throw new ActionFailure({
    code: 'E_INPUT',
    happened: 'mode is sweep, and there is no github-token: the state of the pull requests cannot be read.',
    tried: 'Nothing was removed.',
    next: 'Leave github-token at its default, and give the job the permission `pull-requests: read`.',
  })
}

async function findCandidates(
  { sweep: { baseName } }: SweepInputs,
  { signal }: Deadline,
  { controlPlane }: Deps,
): Promise<Candidate[]> {
  let listed: DeploymentAnswer[]
  try {
    listed = await controlPlane.listDeployments({ nameContains: commonPart(baseName), signal })
  } catch (error) {
    throw requestFailure(error, 'Listing the previews')
  }
  // Pages shift when somebody creates a deployment meanwhile: the same one may be listed twice.
  const unique = [...new Map(listed.map((deployment) => [deployment.id, deployment])).values()]
  return unique
    .flatMap((deployment) => {
      const pullRequest = pullRequestOf(deployment.name, baseName)
      return pullRequest === undefined ? [] : [{ deployment, name: deployment.name, pullRequest }]
    })
    .toSorted((a, b) => a.pullRequest - b.pullRequest)
}

async function judgeAll({
  candidates,
  owner,
  ...rest
}: {
  candidates: readonly Candidate[]
  owner: Owner
  ttlMs: number
  github: Github
  deadline: Deadline
  deps: Deps
}): Promise<Swept[]> {
  const swept: Swept[] = []
  try {
    for (const candidate of candidates) {
      const doubt = await owner(candidate.deployment)
      const judgement: Judgement = doubt === undefined ? await judge({ candidate, ...rest }) : { verdict: 'unproven', why: doubt }
      swept.push({ ...candidate, ...judgement, going: false })
    }
  } catch (error) {
    if (!(error instanceof ActionFailure)) throw error
    const { code, message, tried, next, cause } = error
    const happened = `${message}\nNothing was removed.`
    throw new ActionFailure({ code, happened, next, cause, ...(tried === undefined ? {} : { tried }) })
  }
  return swept
}

/** Asks for the deletion, after one more look: a pull request may have been opened again since it was judged. */
async function begin({
  one,
  deps,
  ...rest
}: {
  one: Swept
  ttlMs: number
  github: Github
  deadline: Deadline
  deps: Deps
}): Promise<void> {
  Object.assign(one, await judge({ candidate: one, deps, ...rest }))
  if (one.verdict !== 'to remove') {
    deps.log.info(`Keeping '${one.name}' after all: ${one.why}.`)
    return
  }
  const { signal } = rest.deadline
  await requestRemoval(one.deployment, signal, deps)
  one.going = true
}

function lineOf({ name, verdict, why }: Swept): string {
  return `${name}: ${verdict === 'unproven' ? 'left alone' : verdict}: ${why}`
}

function notAllRemoved(failed: readonly Swept[], swept: readonly Swept[]): ActionFailure {
  const [first] = failed
  const { code = 'E_UNAVAILABLE', next } = first?.failure ?? {}
  return new ActionFailure({
    code,
    happened:
      `${failed.length} of ${swept.length} previews should be gone and could not be removed:\n` +
      failed.map(({ name, why }) => `- ${name}: ${why}`).join('\n'),
    tried: `The others were dealt with: ${countSwept(swept)}.`,
    ...(next === undefined ? {} : { next }),
  })
}
