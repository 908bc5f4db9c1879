import { EXPORT_DAYS_MAX, type FormatVersion } from '../../contract/bulk-export.ts'
import type { DestinationConfig, DestinationCredentials } from '../../contract/destination.ts'
import type { ExportableField } from '../../contract/exportable-fields.ts'
import { REGIONS } from '../../contract/regions.ts'
import type { RawInputs } from '../inputs.ts'
import type { Fields } from '../parse/fields.ts'
import type { InputProblem } from '../parse/problem.ts'
import { INPUT_NAMES, type InputName, inputSpec } from '../registry.ts'
import { type Moment, resolveMoment } from './moment.ts'

/** The bucket of a destination that is created when it is absent. */
export type BucketWish = {
  config: Pick<DestinationConfig, 'bucket_name' | 'prefix'> & { region?: string; endpoint_url?: string }
  credentials?: DestinationCredentials
}

/** What the workflow wants exported, checked and complete. */
export type ExportWish = {
  /** Address of the main API. */
  apiUrl: string
  projectId: string
  destination: { id: string } | BucketWish
  start: Moment
  /** Absent for a scheduled export. */
  end?: Moment
  intervalHours?: number
  filter?: string
  fields?: ExportableField[]
  formatVersion?: FormatVersion
  wait: boolean
  timeoutMs: number
}

/** The inputs of an export, but for those that action.yml always gives. */
export const EXPORT_INPUTS = INPUT_NAMES.filter((name) => name.startsWith('export-') && inputSpec(name).default === '')
const BUCKET_INPUTS = EXPORT_INPUTS.filter((name) => /^export-(prefix|bucket-region|endpoint-url|.*key.*|session-token)$/.test(name))

/** Reads what is wanted of an export; undefined when none is, or when there are problems, which it adds. */
export function exportOf({
  raw,
  fields,
  now,
  problems,
}: {
  raw: RawInputs
  fields: Fields
  now: number
  problems: InputProblem[]
}): ExportWish | undefined {
  const isSet = (name: InputName): boolean => raw[name] !== ''
  const alone = fields.mode === 'export'
  if (!alone && !isSet('export-project-id')) {
    for (const input of EXPORT_INPUTS.filter(isSet)) {
      const problem = 'is set, and export-project-id is empty: nothing would be exported'
      problems.push({ input, problem, fix: `set export-project-id, or take ${input} out` })
    }
    return undefined
  }
  for (const input of ['export-project-id', 'workspace-id', 'export-start'] as const) {
    if (!isSet(input)) problems.push({ input, problem: 'is empty, and an export needs it', fix: `set ${input}` })
  }
  problems.push(...addressProblems(isSet), ...destinationProblems(isSet), ...rangeProblems({ fields, isSet, now }))
  const destination = destinationOf(fields)
  const { 'export-project-id': projectId, 'export-start': start, 'export-end': end } = fields
  if (projectId === undefined || start === undefined || destination === undefined) return undefined
  return {
    apiUrl: fields['api-url']?.url ?? REGIONS[fields.region ?? 'us'].apiUrl,
    projectId,
    destination,
    start,
    ...(end === undefined ? {} : { end }),
    ...(fields['export-interval-hours'] === undefined ? {} : { intervalHours: fields['export-interval-hours'] }),
    ...(fields['export-filter'] === undefined ? {} : { filter: fields['export-filter'] }),
    ...(fields['export-fields'] === undefined ? {} : { fields: fields['export-fields'] }),
    ...(fields['export-format-version'] === undefined ? {} : { formatVersion: fields['export-format-version'] }),
    wait: fields['export-wait'] ?? true,
    timeoutMs: fields['export-timeout'] ?? 72 * 3_600_000,
  }
}

/** What is wrong with a range, as a clause about its end; undefined when nothing is. */
export function rangeProblem({ start, end }: { start: string; end: string }): string | undefined {
  const milliseconds = Date.parse(end) - Date.parse(start)
  if (milliseconds <= 0) return `is not later than export-start (${start} to ${end}): the end is exclusive`
  if (milliseconds > EXPORT_DAYS_MAX * 86_400_000) return `is more than ${EXPORT_DAYS_MAX} days later than export-start`
  return undefined
}

type IsSet = (name: InputName) => boolean

function addressProblems(isSet: IsSet): InputProblem[] {
  if (!isSet('control-plane-url') || isSet('api-url')) return []
  // The hosted address would get the key of another service.
  const problem = 'is empty, and control-plane-url is set: exports go through the main API of the same service'
  return [{ input: 'api-url', problem, fix: 'set api-url to its address' }]
}

function destinationProblems(isSet: IsSet): InputProblem[] {
  const [byId, byBucket] = [isSet('export-destination-id'), isSet('export-bucket')]
  if (!byId && !byBucket) {
    return [{ input: 'export-destination-id', problem: 'and export-bucket are both empty', fix: 'set one of them' }]
  }
  const problems: InputProblem[] = []
  if (byId) {
    for (const input of ['export-bucket', ...BUCKET_INPUTS] as const) {
      const fix = `keep export-destination-id for this destination, or ${input} to have one created`
      if (isSet(input)) problems.push({ input, problem: 'and export-destination-id are both set', fix })
    }
    return problems
  }
  if (!isSet('export-bucket-region') && !isSet('export-endpoint-url')) {
    const fix = 'set the region for a bucket of the original provider, or export-endpoint-url for another store'
    problems.push({ input: 'export-bucket-region', problem: 'and export-endpoint-url are both empty', fix })
  }
  const [id, secret, token] = ['export-access-key-id', 'export-secret-access-key', 'export-session-token'] as const
  const needs = (input: InputName, by: InputName) =>
    problems.push({ input, problem: `is empty, and ${by} is set`, fix: `set ${input} from a secret that exists` })
  if (isSet(id) && !isSet(secret)) needs(secret, id)
  if (isSet(secret) && !isSet(id)) needs(id, secret)
  if (isSet(token) && !isSet(id) && !isSet(secret)) needs(id, token)
  return problems
}

function rangeProblems({ fields, isSet, now }: { fields: Fields; isSet: IsSet; now: number }): InputProblem[] {
  const { 'export-start': start, 'export-end': end } = fields
  if (isSet('export-interval-hours') && isSet('export-end')) {
    const fix = 'take export-end out for a scheduled export, or export-interval-hours for a one-off'
    return [{ input: 'export-end', problem: 'and export-interval-hours are both set', fix }]
  }
  if (!isSet('export-interval-hours') && !isSet('export-end')) {
    const fix = 'set export-end, to now for example, or export-interval-hours for a scheduled export'
    return [{ input: 'export-end', problem: 'is empty, and a one-off export needs it', fix }]
  }
  if (start === undefined || end === undefined) return []
  const problem = rangeProblem({ start: resolveMoment(start, now), end: resolveMoment(end, now) })
  return problem === undefined ? [] : [{ input: 'export-end', problem }]
}

function destinationOf(fields: Fields): ExportWish['destination'] | undefined {
  const { 'export-destination-id': id, 'export-bucket': bucket } = fields
  if (id !== undefined) return { id }
  if (bucket === undefined) return undefined
  const { 'export-bucket-region': region, 'export-endpoint-url': endpoint, 'export-session-token': token } = fields
  const { 'export-access-key-id': access_key_id, 'export-secret-access-key': secret_access_key } = fields
  return {
    config: {
      bucket_name: bucket,
      prefix: fields['export-prefix'] ?? '',
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint_url: endpoint }),
    },
    ...(access_key_id === undefined || secret_access_key === undefined
      ? {}
      : { credentials: { access_key_id, secret_access_key, ...(token === undefined || token === null ? {} : { session_token: token }) } }),
  }
}
