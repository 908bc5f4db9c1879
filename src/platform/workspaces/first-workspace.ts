import { randomBytes, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Database } from '../database/schema.ts'
import { hashApiKey } from './authenticate.ts'

export interface FirstWorkspace {
  readonly workspaceId: string
  /** Known when it was given or has just been made; else null: only its hash is kept. */
  readonly apiKey: string | null
}

/**
 * Makes the first workspace and its key at the first start. Later starts find it again; a key or an id that is given then is added or
 * checked, so that the command line always tells the truth.
 * @throws {Error} when `workspaceId` names another workspace than the one that is there, or the key belongs to another one.
 */
export async function ensureFirstWorkspace(
  db: Database,
  { apiKey, workspaceId, plan }: { apiKey?: string | undefined; workspaceId?: string | undefined; plan: string },
): Promise<FirstWorkspace> {
  return db.transaction().execute(async (trx) => {
    // Two platforms that start on one new database must not make a first workspace each.
    await sql`select pg_advisory_xact_lock(hashtext('first workspace'))`.execute(trx)
    const [first] = await trx.selectFrom('workspaces').select('id').orderBy('created_at').orderBy('id').limit(1).forUpdate().execute()
    if (first !== undefined && workspaceId !== undefined && first.id !== workspaceId.toLowerCase()) {
      throw new Error(`the data belongs to the workspace ${first.id}, not to --workspace-id ${workspaceId}`)
    }
    const id = first?.id ?? workspaceId?.toLowerCase() ?? randomUUID()
    if (first === undefined) await trx.insertInto('workspaces').values({ id, name: 'first', plan }).execute()
    else await trx.updateTable('workspaces').set({ plan }).where('id', '=', id).execute()

    const key = apiKey ?? (first === undefined ? `das_${randomBytes(30).toString('base64url')}` : null)
    if (key !== null) {
      await trx
        .insertInto('api_keys')
        .values({ id: randomUUID(), workspace_id: id, key_hash: hashApiKey(key) })
        .onConflict((conflict) => conflict.column('key_hash').doNothing())
        .execute()
      const { workspace_id: owner } = await trx
        .selectFrom('api_keys')
        .select('workspace_id')
        .where('key_hash', '=', hashApiKey(key))
        .executeTakeFirstOrThrow()
      if (owner !== id) throw new Error(`the key in --api-key belongs to the workspace ${owner}, not to the first one, ${id}`)
    }
    return { workspaceId: id, apiKey: key }
  })
}
