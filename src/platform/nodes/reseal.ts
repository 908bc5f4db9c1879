import { sql } from 'kysely'
import type { Database } from '../database/schema.ts'
import type { Log } from '../log.ts'
import { type MasterKeys, nameOfKey, opens, resealKeyCheck } from '../master-key.ts'
import { createSecretBox } from '../secrets.ts'

/** Rows that are looked at in one step. */
const BATCH = 500

/** Where sealed values are, and what each is bound to. */
const PLACES = [
  { table: 'revisions', column: 'secrets', context: 'deployment_id' },
  { table: 'export_destinations', column: 'credentials', context: 'id' },
] as const

/**
 * Seals anew, with the newest key, whatever an older one sealed; from then on the older keys can be taken away. It waits until every node
 * knows the newest key: another one could not open what it sealed. Safe to repeat, and to interrupt.
 * @returns how many values were sealed anew; null while it waits.
 */
export async function reseal(db: Database, { keys, secretBox: all }: MasterKeys, log: Log): Promise<number | null> {
  const newest = createSecretBox(keys[0])
  const name = nameOfKey(keys[0])
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from nodes where not key_names ? ${name}`.execute(db)
  if ((rows[0]?.n ?? 0) > 0) {
    log.warn({ nodes: rows[0]?.n }, 'secrets are not sealed with the newest key yet: there are nodes that do not know it')
    return null
  }
  let count = (await resealKeyCheck(db, { newest, all })) ? 1 : 0
  for (const { table, column, context } of PLACES) {
    let after = '00000000-0000-0000-0000-000000000000'
    for (;;) {
      const page = await sql<{ id: string; sealed: Buffer; context: string }>`
        select id, ${sql.ref(column)} as sealed, ${sql.ref(context)} as context from ${sql.table(table)}
        where id > ${after} and ${sql.ref(column)} is not null order by id limit ${BATCH}`.execute(db)
      for (const row of page.rows) {
        if (opens(newest, row.sealed, row.context)) continue
        const fresh = newest.seal(all.open(row.sealed, row.context), row.context)
        // Only what was read: a user may have stored something else meanwhile.
        await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${fresh} where id = ${row.id} and ${sql.ref(column)} = ${row.sealed}`.execute(
          db,
        )
        count += 1
      }
      const last = page.rows.at(-1)
      if (last === undefined || page.rows.length < BATCH) break
      after = last.id
    }
  }
  if (count > 0) log.info({ count }, 'secrets were sealed anew with the newest key: the older ones are not needed any more')
  return count
}
