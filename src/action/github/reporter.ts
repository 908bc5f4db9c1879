import { randomUUID } from 'node:crypto'
import { startDeadline } from '../../client/deadline.ts'
import { withGrace } from '../cancellation.ts'
import type { Deps } from '../deps.ts'
import { type StepInputs, wantsDeploy } from '../inputs.ts'
import type { Outcome } from '../main.ts'
import type { Status } from '../registry.ts'
import { renderComment, startedAtOf } from '../report/comment.ts'
import { summaryData } from '../report/data.ts'
import { ERROR_CODES } from '../report/error-codes.ts'
import { keepComment } from './comment.ts'
import { isFromFork } from './event.ts'
import { GithubFailure } from './failure.ts'
import { failsDescription, servesDescription } from './proof.ts'
import { pullRequestNumberOf } from './pull-request.ts'
import { closeRecord, openRecord, type OpenRecord, type RecordEnd, refsOf, retireRecords, runAddress } from './records.ts'

/** Tells GitHub how a step goes: a record on the deployments page, and the comment of a pull request. Never throws. */
export type Reporter = {
  /** Before the work. */
  begin: () => Promise<void>
  /** The deploy has ended well, and the step goes on. */
  deployed: (status: Status) => Promise<void>
  /** After the work, however it ended. */
  end: (outcome: Outcome) => Promise<void>
}

/** What GitHub may cost a step at most, when it does not answer. */
const BEGIN_MS = 8000
const END_MS = 15_000
/** After a cancellation: the step has to tell the runner, too. */
const GRACE_MS = 2000

/** Ends for which no comment is begun: there is nothing to say to a pull request that was never told of a deployment. */
const UPDATED_ONLY: ReadonlySet<Status> = new Set(['removed', 'skipped', 'cancelled', 'superseded'])
/** Ends that say nothing about what serves now: a step that began later knows more. */
const OUTDATED: ReadonlySet<Status> = new Set(['skipped', 'cancelled', 'superseded'])

export function createReporter(inputs: StepInputs, deps: Deps, newId: () => string = randomUUID): Reporter {
  const { github, context, journal, log, effects } = deps
  const { environment, mode, dryRun } = inputs
  const logUrl = runAddress(context)
  const target = 'target' in inputs ? ('name' in inputs.target ? inputs.target.name : inputs.target.id) : undefined
  const pullRequest = 'preview' in inputs ? inputs.preview.pullRequest : pullRequestNumberOf(context)
  const records = environment !== undefined && !dryRun && mode !== 'export' && mode !== 'sweep'
  const comments = (inputs.comment ?? mode !== 'export') && !dryRun && mode !== 'sweep'
  const given = new Set<string>()
  let open: OpenRecord | undefined

  return {
    begin: async () => {
      if (inputs.comment === true && comments && pullRequest === undefined)
        log.info(
          `comment is true, and the event ${context.eventName || '(none)'} names no pull request: there is nothing to comment on.`,
        )
      if (github === undefined) {
        if (environment !== undefined && records)
          log.warning(`environment is set, and there is no github-token or repository: ${NO_RECORD}`)
        return
      }
      if (environment === undefined || !records || target === undefined || !wantsDeploy(inputs)) return
      await withLimit(BEGIN_MS, (signal) =>
        trying('environment', async () => {
          const payload = {
            deployment: target,
            'control-plane': inputs.controlPlaneUrl,
            mode,
            ...(pullRequest === undefined ? {} : { 'pull-request': pullRequest }),
            ...('id' in inputs.target ? { 'deployment-id': inputs.target.id } : {}),
            step: newId(),
          }
          const transient = mode === 'preview'
          await openRecord({
            github,
            refs: refsOf(inputs, context),
            environment,
            payload,
            transient,
            logUrl,
            onOpen: save,
            signal,
          })
        }),
      )
    },
    deployed: async (status) => await tell({ status }),
    end: async (outcome) => await tell(outcome),
  }

  async function tell(outcome: Outcome): Promise<void> {
    if (github === undefined) return
    const status = 'failure' in outcome ? outcome.failure.status : outcome.status
    await withLimit(END_MS, (signal) => Promise.all([endRecord(outcome, status, signal), comment(outcome, status, signal)]))
  }

  async function endRecord(outcome: Outcome, status: Status, signal: AbortSignal): Promise<void> {
    if (github === undefined || dryRun) return
    const record = open
    if (record !== undefined) {
      // The end of the deploy stands, also where GitHub has not taken it yet: an export comes after it.
      const end = record.end ?? endOf(outcome, status)
      // Written down first: post goes on where this step has to stop.
      save({ ...record, end })
      const closed = await trying('environment', async () => {
        await closeRecord({ github, record, end, logUrl, signal })
        save(undefined)
      })
      const replaces = closed && end.state === 'success' && record.id !== undefined && target !== undefined
      if (replaces)
        await trying('environment', async () => {
          const { environment: name, id: except } = record
          const others = { environment: name, deployments: new Set([target]), ...(except === undefined ? {} : { except }) }
          await retireRecords({ github, ...others, all: false, description: 'A later revision serves', signal })
        })
    }
    if (status === 'removed' && records && environment !== undefined && target !== undefined)
      await trying('environment', async () => {
        const description = 'The preview was removed'
        await retireRecords({ github, environment, deployments: new Set([target]), all: true, description, signal })
      })
    const swept = journal.sweep?.filter(({ verdict }) => verdict === 'removed').map(({ name }) => name) ?? []
    if (swept.length > 0)
      await trying('sweep', async () => {
        await retireRecords({ github, deployments: new Set(swept), all: true, description: 'The preview was removed', signal })
      })
  }

  async function comment(outcome: Outcome, status: Status, signal: AbortSignal): Promise<void> {
    if (github === undefined || !comments || pullRequest === undefined) return
    await trying('comment', async () => {
      const failure = 'failure' in outcome ? outcome.failure : undefined
      const data = summaryData({ status, failure, inputs, journal, github: context, redact: deps.redact, now: effects.now() })
      const key = inputs.mode === 'export' ? `export ${inputs.export.projectId}` : (environment ?? target ?? mode)
      const kept = await keepComment({
        github,
        pullRequest,
        key,
        body: renderComment({ data, key, runUrl: logUrl }),
        create: !UPDATED_ONLY.has(status),
        isNewer: (body) => OUTDATED.has(status) && (startedAtOf(body) ?? 0) > data.startedAt,
        signal,
      })
      if (kept === 'created' || kept === 'updated') log.info(`The comment on the pull request ${pullRequest} was ${kept}.`)
    })
  }

  function endOf(outcome: Outcome, status: Status): RecordEnd {
    const revision = journal.output('revision-id')
    if ('failure' in outcome) {
      // After a rollback the outputs are about the revision that serves.
      const failed = journal.rollback?.failedRevisionId ?? revision
      const { code } = outcome.failure
      const what = `${code}, ${ERROR_CODES[code].title.toLowerCase()}`
      // The outputs are about what serves now, which is not what failed.
      if (status === 'rolled-back') return { state: 'failure', description: `${what}; rolled back to revision ${revision ?? ''}` }
      return { state: STATE_OF[status] ?? 'failure', description: failed === undefined ? what : failsDescription(failed, what) }
    }
    if (status === 'removed') return { state: 'inactive', description: 'The preview was removed' }
    if (status !== 'deployed' && status !== 'unchanged') return { state: 'inactive', description: `The step ended as ${status}` }
    const address = journal.output('deployment-url')
    const isFit = address !== undefined && /^https?:\/\//i.test(address) && deps.redact(address) === address
    const environmentUrl = isFit ? { environmentUrl: address } : {}
    const awaited = status === 'unchanged' || (wantsDeploy(inputs) && inputs.wait)
    const accepted = `Revision ${revision ?? ''} was accepted; its end was not awaited`
    const description = awaited ? servesDescription(revision ?? '', journal.output('smoke-test') === 'passed') : accepted
    return { state: 'success', description, ...environmentUrl }
  }

  function save(record: OpenRecord | undefined): void {
    open = record
    journal.save('deploymentRecord', record === undefined ? '' : JSON.stringify(record))
  }

  /** Does it, or warns: once for each aspect, since what GitHub refuses now it will refuse again. Returns whether it was done. */
  async function trying(aspect: 'environment' | 'comment' | 'sweep', work: () => Promise<void>): Promise<boolean> {
    if (given.has(aspect)) return false
    try {
      await work()
      return true
    } catch (error) {
      given.add(aspect)
      const why = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
      const refused = error instanceof GithubFailure && error.isRefused
      // GitHub gives workflows of forks a token that may only read: nobody can change that, and nobody asked for a comment.
      const expected =
        aspect === 'sweep' || (aspect === 'comment' && refused && inputs.comment === undefined && isFromFork(context))
      const sentence = `${aspect === 'sweep' ? 'environment' : aspect}: ${why}. ${aspect === 'comment' ? NO_COMMENT : NO_RECORD}`
      if (expected || deps.signal.aborted) log.info(sentence)
      else log.warning(sentence)
      return false
    }
  }

  async function withLimit(timeoutMs: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const grace = withGrace({ signal: deps.signal, ms: GRACE_MS, effects })
    const deadline = startDeadline({ timeoutMs, parent: grace.signal, effects })
    try {
      await work(deadline.signal)
    } finally {
      deadline.stop()
      grace.stop()
    }
  }
}

const NO_RECORD = 'The step goes on, and the deployments page of GitHub does not tell of it.'
const NO_COMMENT = 'The step is not affected; the pull request has no up-to-date comment.'

/** Ends that are no failure of what was deployed. A timed-out or cancelled revision may go on by itself: nothing is known of it. */
const STATE_OF: Partial<Record<Status, RecordEnd['state']>> = { superseded: 'inactive', 'timed-out': 'error', cancelled: 'error' }
