import { setTimeout as sleep } from 'node:timers/promises'
import { insertExport } from '../../src/platform/bulk-export/new-export.ts'
import type { Database } from '../../src/platform/database/schema.ts'
import type { Project } from './project.ts'

/** An export of a project to a destination, from the start of a day to the start of another, both as `YYYY-MM-DD`. */
export interface ExportOrder extends Project {
  readonly destinationId: string
  readonly start: string
  readonly end: string
}

/** Makes an export with every field, straight in the store. @returns its id */
export async function createExport(db: Database, order: ExportOrder): Promise<string> {
  const id = await db.transaction().execute((trx) =>
    insertExport(trx, {
      workspaceId: order.workspaceId,
      destinationId: order.destinationId,
      sessionId: order.projectId,
      start: `${order.start}T00:00:00.000000Z`,
      end: `${order.end}T00:00:00.000000Z`,
      filter: null,
      formatVersion: 'v2_beta',
      compression: 'zstandard',
      exportFields: null,
      intervalHours: null,
      source: null,
      now: new Date(),
      dueAt: null,
    }),
  )
  if (id === null) throw new Error('the export was not made')
  return id
}

/** Waits until an export is complete, and fails when it ends in another way. */
export async function untilComplete(db: Database, id: string): Promise<void> {
  for (;;) {
    const { status } = await db.selectFrom('bulk_exports').select('status').where('id', '=', id).executeTakeFirstOrThrow()
    if (status === 'COMPLETED') return
    if (status !== 'CREATED' && status !== 'RUNNING')
      throw new Error(`the export is ${status}: ${JSON.stringify((await runsOf(db, id)).map((run) => run.errors))}`)
    await sleep(20)
  }
}

/** Fails unless a complete export has so many rows, and tells of attempts that failed: a figure with a repeated one in it says nothing. */
export async function checkRows(db: Database, id: string, rows: number): Promise<void> {
  const runs = await runsOf(db, id)
  for (const { errors } of runs) if (errors !== null) console.log(`an attempt failed: ${JSON.stringify(errors)}`)
  const written = runs.reduce((sum, run) => sum + Number(run.rows_written), 0)
  if (written !== rows) throw new Error(`the export has ${written} rows of ${rows}`)
}

function runsOf(db: Database, id: string) {
  return db.selectFrom('bulk_export_runs').select(['rows_written', 'errors']).where('export_id', '=', id).execute()
}
