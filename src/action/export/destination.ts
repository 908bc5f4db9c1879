import { createHash } from 'node:crypto'
import type { BulkExports } from '../../client/bulk-export.ts'
import type { DestinationAnswer } from '../../client/bulk-export-answers.ts'
import { RequestFailure } from '../../client/failure.ts'
import type { Deps } from '../deps.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { requestFailure } from '../report/request-failure.ts'
import { causeOf, DESTINATION_REMEDIES } from './remedy.ts'
import type { BucketWish, ExportWish } from './wish.ts'

const NAME_PART_MAX = 80

/** The destination that is meant. Null: it does not exist yet, and `dryRun` keeps it from being created. */
export async function provideDestination({
  wish,
  dryRun,
  api,
  signal,
  deps,
}: {
  wish: ExportWish
  dryRun: boolean
  api: BulkExports
  signal: AbortSignal
  deps: Pick<Deps, 'log' | 'journal'>
}): Promise<DestinationAnswer | null> {
  const { destination } = wish
  if (!('id' in destination)) return await byName({ bucket: destination, dryRun, api, signal, deps })
  try {
    return await api.getDestination(destination.id, signal)
  } catch (error) {
    const failure = requestFailure(error, `Reading the destination ${destination.id}`)
    if (failure.code !== 'E_NOT_FOUND') throw failure
    const next = 'Check export-destination-id and workspace-id, or set export-bucket to have a destination created.'
    throw new ActionFailure({ code: 'E_NOT_FOUND', happened: failure.message, tried: failure.tried ?? '', next, cause: error })
  }
}

/** Follows from everything that is fixed in a destination: another place gets another name, the same one is found again. */
export function destinationName({ config }: BucketWish): string {
  const { bucket_name: bucket, prefix, region = '', endpoint_url: endpoint = '' } = config
  const hash = createHash('sha256').update(JSON.stringify([bucket, prefix, region, endpoint])).digest('hex').slice(0, 10)
  const readable = [bucket, ...prefix.split('/')].join(' ').replace(/[^A-Za-z0-9\-_]+/g, ' ').trim().slice(0, NAME_PART_MAX)
  return `deploy-agent-server ${readable} ${hash}`
}

async function byName({
  bucket,
  dryRun,
  api,
  signal,
  deps: { log, journal },
}: {
  bucket: BucketWish
  dryRun: boolean
  api: BulkExports
  signal: AbortSignal
  deps: Pick<Deps, 'log' | 'journal'>
}): Promise<DestinationAnswer | null> {
  const name = destinationName(bucket)
  const all = await api.listDestinations(signal).catch((error: unknown) => {
    throw requestFailure(error, 'Listing the export destinations')
  })
  // Of several, made by steps that ran at once, every step takes the same one.
  const [found] = all
    .filter(({ display_name: one }) => one === name)
    .toSorted((a, b) => (a.created_at ?? a.id).localeCompare(b.created_at ?? b.id))
  if (found === undefined) {
    if (dryRun) return null
    const { config, credentials } = bucket
    const body = {
      destination_type: 's3' as const,
      display_name: name,
      config: { ...config, include_bucket_in_prefix: false },
      ...(credentials === undefined ? {} : { credentials }),
    }
    const known = all.map(({ id }) => id)
    const made = await api.createDestination({ body, known, signal }).catch((error: unknown) => {
      throw destinationFailure(error, `Creating the destination for the bucket '${config.bucket_name}'`)
    })
    log.info(`Created the destination '${name}' (${made.id}).`)
    return made
  }
  log.info(`Found the destination '${name}' (${found.id}).`)
  if (!dryRun) await updateCredentials()
  return found

  async function updateCredentials(): Promise<void> {
    if (found === undefined || bucket.credentials === undefined) return
    try {
      await api.updateCredentials({ id: found.id, credentials: bucket.credentials, signal })
    } catch (error) {
      if (!(error instanceof RequestFailure) || error.kind !== 'unsupported')
        throw destinationFailure(error, `Bringing the credentials of the destination '${name}' (${found.id}) up to date`)
      journal.note(`This service cannot change the credentials of a destination: ${found.id} keeps those that it was made with.`)
    }
  }
}

/** Refusals of the bucket are told apart from all others, by their cause. */
function destinationFailure(error: unknown, doing: string): ActionFailure {
  const failure = requestFailure(error, doing)
  if (!(error instanceof RequestFailure) || error.kind !== 'http' || error.status !== 400) return failure
  const cause = causeOf(error.detail ?? error.excerpt ?? '')
  return new ActionFailure({
    code: 'E_DESTINATION',
    happened: failure.message,
    ...(failure.tried === undefined ? {} : { tried: failure.tried }),
    ...(cause === undefined ? {} : { next: DESTINATION_REMEDIES[cause] }),
    cause: error,
  })
}

/** Where the files of an export are. */
export function pathOfExport({ config }: DestinationAnswer, exportId: string | undefined): string {
  const prefix = config.prefix.split('/').filter((part) => part !== '')
  const inside = [...(config.include_bucket_in_prefix === true ? [config.bucket_name] : []), ...prefix]
  return `s3://${[config.bucket_name, ...inside, `export_id=${exportId ?? '…'}`].join('/')}/`
}
