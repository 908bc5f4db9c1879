import { z } from 'zod'
import { sameRepoUrl } from '../parse/repo-url.ts'
import { type StepInputs, wantsDeploy } from '../inputs.ts'
import type { GithubContext } from './context.ts'
import { sourceOfEvent } from './event.ts'
import { GithubFailure } from './failure.ts'
import type { DeploymentRecord, DeploymentState, Github } from './github.ts'
import { payloadOf, readPayload, type RecordPayload, TASK } from './proof.ts'

/** How a record ends. */
export type RecordEnd = { state: DeploymentState; description: string; environmentUrl?: string }

/** What post needs to bring a record to its end. `id` is missing while GitHub has not answered, `end` while main works. */
export type OpenRecord = { environment: string; step: string; id?: number; end?: RecordEnd }

const openSchema = z.object({
  environment: z.string(),
  step: z.string(),
  id: z.int().optional(),
  end: z.object({ state: z.string(), description: z.string(), environmentUrl: z.string().optional() }).optional(),
})

/** Reads what main has left; undefined when there is nothing of use. */
export function readOpenRecord(text: string): OpenRecord | undefined {
  try {
    const parsed = openSchema.safeParse(JSON.parse(text))
    return parsed.success ? (parsed.data as OpenRecord) : undefined
  } catch {
    return undefined
  }
}

/** Records of the same environment that are looked through when one takes the place of another. */
const EARLIER_MAX = 20
/** The same where all of them go. */
const RETIRED_MAX = 100

/** The page of this attempt of the workflow run; undefined outside one, and for a server without pages: GitHub refuses its address. */
export function runAddress({ serverUrl, repository, runId, runAttempt }: GithubContext): string | undefined {
  if (runId === '' || repository === '' || !/^https?:\/\//i.test(serverUrl)) return undefined
  const attempt = runAttempt === '' ? '' : `/attempts/${encodeURIComponent(runAttempt)}`
  return `${serverUrl}/${repository}/actions/runs/${encodeURIComponent(runId)}${attempt}`
}

/** What the record names as deployed, the best first: GitHub refuses a branch or tag that it does not know. */
export function refsOf(inputs: StepInputs, context: GithubContext): string[] {
  const event = sourceOfEvent(context).commit ?? context.sha
  return [...new Set([wanted() ?? event, event])].filter((ref) => ref !== '')

  function wanted(): string | undefined {
    if (!wantsDeploy(inputs) || inputs.source.kind !== 'git_host') return undefined
    const { repoUrl, repoRef, commit } = inputs.source
    const own = sameRepoUrl(repoUrl, `${context.serverUrl}/${context.repository}`)
    // What a promotion deploys is what the tag is at by now: a rerun carries the commit of an old event.
    const known = inputs.mode === 'promote' ? undefined : commit
    return known ?? (own ? repoRef.replace(/^refs\/tags\//, '') : undefined)
  }
}

/** Makes the record and says that it is in progress. `onOpen` is told what is known at each moment, before GitHub is asked for more. */
export async function openRecord({
  github,
  refs,
  environment,
  payload,
  transient,
  logUrl,
  onOpen,
  signal,
}: {
  github: Pick<Github, 'createDeployment' | 'createDeploymentStatus'>
  /** The first that GitHub knows is taken. */
  refs: readonly string[]
  environment: string
  payload: RecordPayload & { step: string }
  transient: boolean
  logUrl: string | undefined
  onOpen: (record: OpenRecord | undefined) => void
  signal: AbortSignal
}): Promise<void> {
  const open = { environment, step: payload.step }
  let made = false
  const description = `Deploying ${payload.deployment}`
  onOpen(open)
  try {
    const { id } = await create()
    made = true
    onOpen({ ...open, id })
    const log = logUrl === undefined ? {} : { logUrl }
    await github.createDeploymentStatus(
      { deploymentId: id, state: 'in_progress', description, autoInactive: false, ...log },
      signal,
    )
  } catch (error) {
    // One that was made has to be brought to its end, whatever GitHub says to its first status.
    if (!made && error instanceof GithubFailure && error.request.kind === 'http' && !error.request.ambiguous) onOpen(undefined)
    throw error
  }

  async function create(): Promise<DeploymentRecord> {
    const production = !transient && /^prod(uction)?$/i.test(environment)
    const fields = { environment, task: TASK, description, payload: payloadOf(payload), transient, production }
    for (const [index, ref] of refs.entries()) {
      try {
        return await github.createDeployment({ ...fields, ref }, signal)
      } catch (error) {
        const unknown = error instanceof GithubFailure && error.status === 422 && index < refs.length - 1
        if (!unknown) throw error
      }
    }
    throw new Error('the event names no commit that could be recorded')
  }
}

/** Brings a record to its end. One whose id GitHub never told is looked for. */
export async function closeRecord({
  github,
  record: { environment, step, id },
  end: { state, description, environmentUrl },
  logUrl,
  signal,
}: {
  github: Pick<Github, 'createDeploymentStatus' | 'listDeployments'>
  record: OpenRecord
  end: RecordEnd
  logUrl: string | undefined
  signal: AbortSignal
}): Promise<void> {
  const deploymentId = id ?? (await find())
  // It was never made.
  if (deploymentId === undefined) return
  const addresses = { ...(environmentUrl === undefined ? {} : { environmentUrl }), ...(logUrl === undefined ? {} : { logUrl }) }
  await github.createDeploymentStatus({ deploymentId, state, description, autoInactive: false, ...addresses }, signal)

  async function find(): Promise<number | undefined> {
    const records = await github.listDeployments({ environment, task: TASK, max: EARLIER_MAX }, signal)
    return records.find(({ payload }) => readPayload(payload)?.step === step)?.id
  }
}

/**
 * Makes records of one deployment inactive: those that were successful and have been followed by another, or all of them. GitHub's own
 * way would also take those of other deployments in the environment, and leave those of production and of previews.
 */
export async function retireRecords({
  github,
  environment,
  deployments,
  except,
  all,
  description,
  signal,
}: {
  github: Pick<Github, 'createDeploymentStatus' | 'listDeployments' | 'listDeploymentStatuses'>
  /** Absent: all environments. */
  environment?: string
  /** Names, or ids, as the payloads of the records have them. */
  deployments: ReadonlySet<string>
  /** A record that stays; only earlier ones are retired. */
  except?: number
  /** Also those that have failed or never ended. */
  all: boolean
  description: string
  signal: AbortSignal
}): Promise<number> {
  const filter = environment === undefined ? {} : { environment }
  const records = await github.listDeployments({ ...filter, task: TASK, max: all ? RETIRED_MAX : EARLIER_MAX }, signal)
  const theirs = records.filter(({ id, payload }) => deployments.has(readPayload(payload)?.deployment ?? '') && id !== except)
  let retired = 0
  for (const { id } of theirs.filter((record) => except === undefined || record.id < except)) {
    const [last] = await github.listDeploymentStatuses(id, signal)
    const state = last?.state
    // Each success retires what came before it: behind one that was retired so there is nothing left to do. One that was superseded, or
    // whose step did nothing, is inactive as well, and has retired nothing.
    if (state === 'inactive' && last?.description === description && !all) break
    if (state === 'inactive' || (!all && state !== 'success')) continue
    await github.createDeploymentStatus({ deploymentId: id, state: 'inactive', description, autoInactive: false }, signal)
    retired++
  }
  return retired
}
