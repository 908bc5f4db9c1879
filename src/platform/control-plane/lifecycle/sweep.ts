import { readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { sql } from 'kysely'
import type { Database } from '../../database/schema.ts'
import { UNFINISHED } from './states.ts'

/**
 * Removes the builds that nobody needs: of failed and superseded revisions, of old deployed ones, of deployments that are gone, and what
 * an interrupted removal left behind. What runs, what drains and what is unfinished stays, and so do the newest `buildsKept` deployed
 * revisions of a deployment: for redeploys without a build. @returns how many were removed.
 */
export async function sweepBuilds(db: Database, { builds, buildsKept }: { builds: string; buildsKept: number }): Promise<number> {
  // The folders first: a revision that begins after this look has no folder in the list.
  const folders = await readdir(builds)
  if (folders.length === 0) return 0
  const needed = await neededFolders(db, { builds, buildsKept })
  let removed = 0
  for (const folder of folders) {
    if (needed.has(folder)) continue
    // A process that is still ending may write into it: the next sweep is there for that.
    await rm(path.join(builds, folder), { recursive: true, force: true }).catch(() => undefined)
    removed += 1
  }
  return removed
}

/** Names of the build folders in use. A redeployed revision uses the folder of the one that was built, and one of its own. */
async function neededFolders(db: Database, { builds, buildsKept }: { builds: string; buildsKept: number }): Promise<Set<string>> {
  const { rows } = await sql<{ id: string; directory: string | null }>`
    select id, built->>'directory' as directory from revisions where status in (${sql.join(UNFINISHED)})
    union all
    select revisions.id, built->>'directory' from agents join revisions on revisions.id = agents.revision_id
    union all
    select revisions.id, built->>'directory' from deployments join revisions on revisions.id = deployments.active_revision_id
    union all
    select kept.id, kept.built->>'directory' from deployments cross join lateral (
      select id, built from revisions
      where deployment_id = deployments.id and status = 'DEPLOYED' and built is not null
      order by number desc limit ${buildsKept}
    ) as kept`.execute(db)
  return new Set(rows.flatMap(({ id, directory }) => (directory === null ? [id] : [id, folderOf(builds, directory)])))
}

/** The folder below the builds' folder that a build lies in, however deep. */
function folderOf(builds: string, directory: string): string {
  return path.relative(builds, directory).split(path.sep)[0] ?? ''
}

/** Rows that one statement removes. */
const BATCH = 20_000

/**
 * Removes the build and deploy logs of all but the newest `logsKept` revisions of each deployment; those of the active one, of what runs
 * and of what is unfinished stay. The revisions themselves and their transitions are kept. @returns how many lines were removed.
 */
export async function sweepLogs(db: Database, { logsKept }: { logsKept: number }): Promise<number> {
  // Walks the index from revision to revision: there are few of them beside the lines.
  const { rows } = await sql<{ id: string }>`
    with recursive logged as (
      (select revision_id from revision_logs order by revision_id limit 1)
      union all
      select (select revision_id from revision_logs where revision_id > logged.revision_id order by revision_id limit 1)
      from logged where logged.revision_id is not null
    )
    select revisions.id from logged
    join revisions on revisions.id = logged.revision_id
    join deployments on deployments.id = revisions.deployment_id
    where revisions.status not in (${sql.join(UNFINISHED)})
      and deployments.active_revision_id is distinct from revisions.id
      and not exists (select 1 from agents where agents.revision_id = revisions.id)
      and exists (
        select 1 from revisions newer
        where newer.deployment_id = revisions.deployment_id and newer.number > revisions.number
        order by newer.number offset ${logsKept - 1} limit 1
      )`.execute(db)
  let removed = 0
  for (const { id } of rows) {
    for (;;) {
      // Locked in one order: the removal of the deployment and the log itself may delete the same lines.
      const { numAffectedRows = 0n } = await sql`
        delete from revision_logs where id in (
          select id from revision_logs where revision_id = ${id} order by id limit ${BATCH} for update
        )`.execute(db)
      removed += Number(numAffectedRows)
      if (numAffectedRows < BATCH) break
    }
  }
  return removed
}

/**
 * Empties the package managers' caches when they have grown beyond `maxBytes`. Only while nothing is built: a build reads from them.
 * @returns whether they were emptied.
 */
export async function sweepCache({ cache, maxBytes, isIdle }: { cache: string; maxBytes: number; isIdle: () => boolean }): Promise<boolean> {
  if (!isIdle() || (await sizeOf(cache)) <= maxBytes || !isIdle()) return false
  for (const name of await readdir(cache)) await rm(path.join(cache, name), { recursive: true, force: true })
  return true
}

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    const stats = await stat(path.join(entry.parentPath, entry.name)).catch(() => null)
    bytes += stats?.size ?? 0
  }
  return bytes
}
