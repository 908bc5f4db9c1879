import { sql } from 'kysely'
import { isTagRef } from '../../../contract/git-ref.ts'
import type { Database, DatabaseTransaction, DeploymentRow, RevisionRow } from '../../database/schema.ts'
import type { Log } from '../../log.ts'
import { insertRevision } from '../revisions.ts'
import type { GitSource } from '../sources/source.ts'
import { isUnfinished } from './states.ts'

export interface PushWatchOptions {
  readonly db: Database
  readonly log: Log
  readonly intervalMs: number
  /** How many remotes are asked at once. */
  readonly atOnce: number
  readonly resolveHead: (source: GitSource, options: { signal: AbortSignal }) => Promise<string>
  readonly tokenFor: (repoUrl: string) => string | undefined
  readonly signal: AbortSignal
  /** Between 0 and 1: keeps deployments that were made together from being looked at together for ever. */
  readonly random?: () => number
}

/** A remote that does not answer is given up after this time. Milliseconds. */
const LOOK_LIMIT_MS = 30_000
/** A remote that fails is asked less and less often, down to once in so many intervals. */
const BACKOFF_MAX = 64

/**
 * Watches the branches of deployments with `build_on_push` (specification 2.2): a push makes a revision. When the next look is due is kept
 * in the database, so that a restart forgets nothing and several processes share the looks.
 * @returns whether more looks are due.
 */
export async function watchPushes(options: PushWatchOptions): Promise<boolean> {
  await beginWatching(options.db)
  const due = await takeDue(options)
  await Promise.all(due.map((deployment) => look(deployment, options)))
  return due.length === options.atOnce && !options.signal.aborted
}

/** Every deployment that is to be watched has a row; the others have none. */
async function beginWatching(db: Database): Promise<void> {
  // The references lock the deployments in the order of the rows: that of `deleteDeployments`.
  await sql`
    insert into branch_watches (deployment_id)
    select id from deployments where ${WATCHED} order by id on conflict do nothing`.execute(db)
  await sql`
    delete from branch_watches using deployments
    where deployments.id = branch_watches.deployment_id and not (${WATCHED})`.execute(db)
}

/** The index `deployments_watched` has the same words. */
const WATCHED = sql`source = 'git_host' and (source_config->>'build_on_push') = 'true' and status <> 'AWAITING_DELETE'`

interface Due {
  readonly deployment_id: string
  readonly failures: number
}

/** Takes the looks that are due and sets the next ones, so that no other process takes them too. */
async function takeDue({ db, intervalMs, atOnce, random = Math.random }: PushWatchOptions): Promise<readonly Due[]> {
  // Between 0.8 and 1.2 intervals.
  const wait = `${Math.round(intervalMs * (0.8 + 0.4 * random()))} milliseconds`
  const { rows } = await sql<Due>`
    update branch_watches set next_look_at = now() + ${wait}::interval * least(${BACKOFF_MAX}::int, power(2, least(failures, 10)))
    where deployment_id in (
      select deployment_id from branch_watches where next_look_at <= now() order by next_look_at limit ${atOnce} for update skip locked
    )
    returning deployment_id, failures`.execute(db)
  return rows
}

async function look({ deployment_id: deploymentId, failures }: Due, options: PushWatchOptions): Promise<void> {
  const { db, log, signal } = options
  try {
    const watched = await readWatched(db, deploymentId)
    if (watched === null) return
    const { repoUrl, branch } = watched
    const token = options.tokenFor(repoUrl)
    const source = { repoUrl, ref: branch, ...(token === undefined ? {} : { token }) }
    const head = await options.resolveHead(source, { signal: AbortSignal.any([signal, AbortSignal.timeout(LOOK_LIMIT_MS)]) })
    const made = await db.transaction().execute((trx) => judgeHead(trx, { deploymentId, branch, head }))
    if (made !== null) log.info({ deploymentId, revisionId: made, head }, 'a push made a revision')
  } catch (error) {
    if (signal.aborted) return
    // A branch that was deleted comes here as well: it makes no revision. The 1st, 2nd, 4th, 8th … failure in a row is told.
    const count = failures + 1
    const details = { deploymentId, failures: count, error: (error as Error).message }
    if (Number.isInteger(Math.log2(count))) log.warn(details, 'a branch could not be looked at')
    await db.updateTable('branch_watches').set({ failures: count }).where('deployment_id', '=', deploymentId).execute()
  }
}

/** What the deployment builds now, or null when that is no branch. */
async function readWatched(db: Database | DatabaseTransaction, deploymentId: string): Promise<Watched | null> {
  const deployment = await db.selectFrom('deployments').selectAll().where('id', '=', deploymentId).executeTakeFirst()
  if (deployment === undefined || deployment.status === 'AWAITING_DELETE' || !deployment.source_config.build_on_push) return null
  const latest = await db.selectFrom('revisions').selectAll().where('id', '=', deployment.latest_revision_id).executeTakeFirst()
  const branch = latest?.repo_ref
  const repoUrl = deployment.source_config.repo_url
  if (latest === undefined || !branch || isTagRef(branch) || !repoUrl) return null
  return { deployment, latest, branch, repoUrl }
}

interface Watched {
  readonly deployment: DeploymentRow
  readonly latest: RevisionRow
  readonly branch: string
  readonly repoUrl: string
}

/** @returns the id of the revision that the head made, or null. */
async function judgeHead(
  trx: DatabaseTransaction,
  { deploymentId, branch, head }: { deploymentId: string; branch: string; head: string },
): Promise<string | null> {
  await trx.selectFrom('deployments').select('id').where('id', '=', deploymentId).forUpdate().execute()
  const watched = await readWatched(trx, deploymentId)
  const watch = await trx.selectFrom('branch_watches').selectAll().where('deployment_id', '=', deploymentId).forUpdate().executeTakeFirst()
  // Changed while the remote was asked: the next look sees it as it is now.
  if (watched === null || watch === undefined || watched.branch !== branch) return null
  const seen = watch.branch === branch ? watch.head : null
  const verdict = judge({ head, seen, latest: watched.latest })
  const change = verdict === 'wait' ? { failures: 0 } : { failures: 0, branch, head }
  await trx.updateTable('branch_watches').set(change).where('deployment_id', '=', deploymentId).execute()
  if (verdict !== 'make') return null
  const { deployment, latest } = watched
  return insertRevision(trx, {
    deploymentId,
    source: deployment.source,
    revisionSource: { repo_ref: latest.repo_ref, graph_config_path: latest.graph_config_path, image_uri: latest.image_uri },
    secrets: { sealed: latest.secrets, names: latest.secret_names },
    reason: `push to ${branch}: ${head}`,
  })
}

/** What a look means: the head needs a revision, it needs none, or that cannot be told yet. */
export type Verdict = 'make' | 'known' | 'wait'

/**
 * Judges a head against the head of the last look (`seen`; null at the first look at this branch) and the latest revision. Each head makes
 * one revision at most, so that one that fails, is interrupted or is rolled back is not made again until the next push.
 */
export function judge({
  head,
  seen,
  latest,
}: {
  head: string
  seen: string | null
  latest: Pick<RevisionRow, 'status' | 'repo_commit_sha'>
}): Verdict {
  if (head === seen || head === latest.repo_commit_sha) return 'known'
  if (latest.repo_commit_sha !== null) return 'make'
  // Not cloned yet: it will clone this head, or a newer one.
  if (latest.status !== 'BUILDING' && isUnfinished(latest.status)) return 'known'
  // Being cloned: whether this head or the one before is told in a moment.
  if (latest.status === 'BUILDING') return 'wait'
  // It ended before its commit was known. At the first look nothing tells that anybody has pushed since.
  return seen === null ? 'known' : 'make'
}
