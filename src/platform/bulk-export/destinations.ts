import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import {
  type Destination,
  DESTINATION_ERRORS,
  type DestinationConfig,
  type DestinationCreate,
  type DestinationCredentials,
  type DestinationError,
  destinationNotFound,
} from '../../contract/destination.ts'
import type { ExportDestinationRow } from '../database/schema.ts'
import { HttpProblem } from '../http/problem.ts'
import type { SecretBox } from '../secrets.ts'
import { type Bucket, openBucket } from './bucket/bucket.ts'
import { judgeBucketError } from './bucket/bucket-error.ts'
import { ForbiddenEndpoint } from './bucket/endpoint.ts'
import type { ExportContext } from './context.ts'
import { testKey } from './layout.ts'

/** Only self-hosted installations may use the environment's credentials (specification 2.6); `any` is one, too. */
const SELF_HOSTED: readonly string[] = ['self_hosted', 'any']

/**
 * Makes a destination, once a test file could be written into its bucket (specification 4.3).
 * @throws {HttpProblem} 400 with one of the four causes of specification 7.2, 503 when the store does not answer for the moment.
 */
export async function createDestination(
  context: ExportContext,
  { workspaceId, body }: { workspaceId: string; body: DestinationCreate },
): Promise<Destination> {
  const { db, secretBox, offering } = context
  const credentials = body.credentials ?? null
  if (credentials === null && !SELF_HOSTED.includes(offering)) {
    const reason = 'credentials are required: only self-hosted installations may leave them out, to use those of their environment'
    throw new HttpProblem(400, `Destination refused: ${reason}.`)
  }
  await tryBucket(context, { config: body.config, credentials })
  const id = randomUUID()
  const row = await db
    .insertInto('export_destinations')
    .values({
      id,
      workspace_id: workspaceId,
      destination_type: 's3',
      display_name: body.display_name,
      config: JSON.stringify(body.config),
      ...sealCredentials(secretBox, id, credentials),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toDestination(row)
}

/** Newest first. */
export async function listDestinations({ db }: ExportContext, { workspaceId, limit, offset }: Listing): Promise<Destination[]> {
  const rows = await db
    .selectFrom('export_destinations')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('number', 'desc')
    .limit(limit)
    .offset(offset)
    .execute()
  return rows.map(toDestination)
}

export interface Listing {
  readonly workspaceId: string
  readonly limit: number
  readonly offset: number
}

/** @throws {HttpProblem} 404. */
export async function readDestination(context: ExportContext, place: DestinationPlace): Promise<Destination> {
  return toDestination(await findDestination(context, place))
}

interface DestinationPlace {
  readonly workspaceId: string
  readonly destinationId: string
}

async function findDestination({ db }: ExportContext, { workspaceId, destinationId }: DestinationPlace): Promise<ExportDestinationRow> {
  const row = await db
    .selectFrom('export_destinations')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', destinationId)
    .executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, destinationNotFound(destinationId))
  return row
}

/**
 * Gives a destination new credentials, after a test write with them. Export runs that begin from now on use them; those at work end with
 * the old ones.
 * @throws {HttpProblem} 404, and as {@link createDestination}.
 */
export async function changeCredentials(
  context: ExportContext,
  { credentials, ...place }: DestinationPlace & { credentials: DestinationCredentials },
): Promise<Destination> {
  const { config } = await findDestination(context, place)
  await tryBucket(context, { config, credentials })
  const row = await context.db
    .updateTable('export_destinations')
    .set({ ...sealCredentials(context.secretBox, place.destinationId, credentials), updated_at: sql<Date>`clock_timestamp()` })
    .where('id', '=', place.destinationId)
    .where('workspace_id', '=', place.workspaceId)
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw new HttpProblem(404, destinationNotFound(place.destinationId))
  return toDestination(row)
}

/** Writes a test file and deletes it where that is allowed; where it is not, the file stays under `tmp/`. */
async function tryBucket(
  { settings, rules }: ExportContext,
  { config, credentials }: { config: DestinationConfig; credentials: DestinationCredentials | null },
): Promise<void> {
  let bucket: Bucket
  try {
    bucket = openBucket({ config, credentials, rules, requestLimitMs: settings.requestLimitMs, connectLimitMs: settings.connectLimitMs })
  } catch (error) {
    if (error instanceof ForbiddenEndpoint) throw refusal('Invalid endpoint', error.message)
    throw error
  }
  const key = testKey(config, randomUUID())
  try {
    await bucket.putText(key, 'Written to see whether exports can be. It may be deleted.\n')
    await bucket.remove(key).catch(() => undefined)
  } catch (error) {
    const { word, code } = judgeBucketError(error)
    if (word !== null) throw refusal(word, `${DESTINATION_ERRORS[word]} (${code})`)
    throw new HttpProblem(503, `The bucket's store does not answer as it should at the moment (${code}): try again.`, { 'Retry-After': '5' })
  } finally {
    bucket.close()
  }
}

function refusal(word: DestinationError, reason: string): HttpProblem {
  return new HttpProblem(400, `${word}: ${reason}.`)
}

function sealCredentials(secretBox: SecretBox, destinationId: string, credentials: DestinationCredentials | null) {
  const pairs = Object.entries(credentials ?? {}).flatMap(([name, value]) => (value ? [{ name, value }] : []))
  return {
    credentials: pairs.length === 0 ? null : secretBox.seal(pairs, destinationId),
    credentials_keys: JSON.stringify(pairs.map(({ name }) => name)),
  }
}

/** What {@link createDestination} has stored; null for the environment's own. */
export function openCredentials(secretBox: SecretBox, { id, credentials }: ExportDestinationRow): DestinationCredentials | null {
  if (credentials === null) return null
  const values = Object.fromEntries(secretBox.open(credentials, id).map(({ name, value }) => [name, value]))
  return {
    access_key_id: values['access_key_id'] ?? '',
    secret_access_key: values['secret_access_key'] ?? '',
    session_token: values['session_token'] ?? null,
  }
}

function toDestination(row: ExportDestinationRow): Destination {
  const { config } = row
  return {
    id: row.id,
    tenant_id: row.workspace_id,
    display_name: row.display_name,
    destination_type: row.destination_type,
    config: {
      bucket_name: config.bucket_name,
      prefix: config.prefix,
      region: config.region ?? null,
      endpoint_url: config.endpoint_url ?? null,
      include_bucket_in_prefix: config.include_bucket_in_prefix,
      s3_additional_kwargs: config.s3_additional_kwargs ?? null,
      config_kwargs_s3: config.config_kwargs_s3 ?? null,
    },
    credentials_keys: row.credentials_keys,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}
