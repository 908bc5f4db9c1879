import { sql, type UpdateObject } from 'kysely'
import { isFinalRevisionStatus, type RevisionStatus } from '../../../contract/status.ts'
import { announce } from '../../database/notifications.ts'
import type { DatabaseTransaction, RevisionRow, Schema } from '../../database/schema.ts'
import { noteEnd } from './endings.ts'
import { isTransition } from './states.ts'

/** The revision is not where the caller left it: somebody else moved it, or its lease went to another worker. */
export class RevisionMoved extends Error {}

/** Columns that change together with the status. */
export type RevisionUpdate = UpdateObject<Schema, 'revisions'>

/** A revision's row as the caller last saw it. */
export type RevisionAt = Pick<RevisionRow, 'id' | 'source' | 'status'> & { readonly lease_token?: string | null }

/**
 * Moves a revision one step in the state machine, stores the step with its time and reason, and gives its lease back. With a
 * `lease_token` in `revision` the move counts only while that lease is held: a worker that slept past it can never commit.
 * @throws {RevisionMoved} when the revision is elsewhere by now.
 * @throws {Error} for a step that the state machine does not have: a defect of ours.
 */
export async function transition(
  trx: DatabaseTransaction,
  { revision, to, reason, set = {} }: { revision: RevisionAt; to: RevisionStatus; reason: string; set?: RevisionUpdate },
): Promise<RevisionRow> {
  const from = revision.status
  if (!isTransition({ from, to, source: revision.source })) throw new Error(`a revision cannot go from ${from} to ${to}`)
  let update = trx
    .updateTable('revisions')
    .set({
      lease_owner: null,
      lease_token: null,
      lease_expires_at: null,
      ...set,
      status: to,
      ...(isFinalRevisionStatus(to) ? { status_message: reason } : {}),
      status_since: sql<Date>`clock_timestamp()`,
      updated_at: sql<Date>`clock_timestamp()`,
    })
    .where('id', '=', revision.id)
    .where('status', '=', from)
  if (revision.lease_token) update = update.where('lease_token', '=', revision.lease_token)
  const moved = await update.returningAll().executeTakeFirst()
  if (moved === undefined) throw new RevisionMoved(`revision ${revision.id} is no longer ${from}, or its lease was lost`)
  await recordTransition(trx, { revisionId: revision.id, from, to, reason })
  if (isFinalRevisionStatus(to)) noteEnd(trx, revision.id)
  await announce(trx, 'work')
  return moved
}

/** Stores a step; `from` is null for the first. */
export async function recordTransition(
  trx: DatabaseTransaction,
  { revisionId, from, to, reason }: { revisionId: string; from: RevisionStatus | null; to: RevisionStatus; reason: string },
): Promise<void> {
  await trx.insertInto('revision_transitions').values({ revision_id: revisionId, from_status: from, to_status: to, reason }).execute()
}
