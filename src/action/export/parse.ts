import { FILTER_MAX, INTERVAL_HOURS_MAX, INTERVAL_HOURS_MIN } from '../../contract/bulk-export.ts'
import { BUCKET_NAME_MAX, BUCKET_NAME_MIN, destinationConfigSchema, destinationCredentialsSchema } from '../../contract/destination.ts'
import { EXPORTABLE_FIELDS, type ExportableField } from '../../contract/exportable-fields.ts'
import { FilterError } from '../../contract/filter/filter-error.ts'
import { parseFilter } from '../../contract/filter/parse.ts'
import { isHttp, notAnAddress, notHttp, parseAddress } from '../parse/address.ts'
import { type Parsed, parseWith } from '../parse/parsed.ts'
import { clip } from '../report/plain.ts'

/** How the texts of the export's inputs are read. */

export const BUCKET_RULE = `the name of a bucket, ${BUCKET_NAME_MIN} to ${BUCKET_NAME_MAX} letters, digits, dots, hyphens and underscores`
export const PREFIX_RULE = 'a path inside the bucket such as traces/production, without control characters'
export const BUCKET_REGION_RULE = 'the name of a region such as eu-central-1'
export const ENDPOINT_RULE = 'an http or https address without user name, password, query and fragment'
export const CREDENTIAL_RULE = 'printable characters without white space'
export const INTERVAL_RULE = `a whole number of hours from ${INTERVAL_HOURS_MIN} to ${INTERVAL_HOURS_MAX}`
export const FILTER_RULE = 'a filter such as and(eq(is_root, true), has(tags, "production"))'
export const FIELDS_RULE = `some of ${EXPORTABLE_FIELDS.join(', ')}; separated by commas or lines`

const { shape } = destinationConfigSchema
const CREDENTIALS = destinationCredentialsSchema.shape
const HINT_CHARACTERS = 30

export function parseApiUrl(text: string): Parsed<{ url: string; warning?: string }> {
  return parseAddress(text, 'api-url')
}

export function parseBucket(text: string): Parsed<string> {
  const name = /^s3:\/\/([^/]+)/i.exec(text)?.[1]
  if (name !== undefined) return { problem: 'is an address', fix: `write ${name}, and put what follows it into export-prefix` }
  return shape.bucket_name.safeParse(text).success ? { value: text } : { problem: 'is not the name of a bucket' }
}

export function parsePrefix(text: string): Parsed<string> {
  // The same place under another writing would be another destination.
  const prefix = text.split('/').filter((part) => part !== '').join('/')
  return parseWith(shape.prefix, prefix)
}

export function parseBucketRegion(text: string): Parsed<string> {
  return /^[A-Za-z0-9-]{1,64}$/.test(text) ? { value: text } : { problem: 'is not the name of a region' }
}

export function parseEndpoint(text: string): Parsed<string> {
  const url = URL.parse(text)
  if (url === null) return notAnAddress(text)
  if (!isHttp(url)) return notHttp(text)
  if (url.username !== '' || url.password !== '')
    return { problem: 'carries credentials', fix: 'put them into export-access-key-id and export-secret-access-key' }
  if (url.search !== '' || url.hash !== '') return { problem: 'has a query or a fragment', fix: 'end it after the path' }
  return { value: `${url.origin}${url.pathname.replace(/\/+$/, '')}` }
}

export function parseCredential(name: keyof typeof CREDENTIALS) {
  return (text: string): Parsed<string> =>
    CREDENTIALS[name].safeParse(text).success ? { value: text } : { problem: 'has characters that it cannot have, or is too long' }
}

export function parseInterval(text: string): Parsed<number> {
  const hours = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN
  if (hours >= INTERVAL_HOURS_MIN && hours <= INTERVAL_HOURS_MAX) return { value: hours }
  const written = /^(\d{1,3})h$/.exec(text)?.[1]
  return { problem: 'is not a number of hours that can be used', ...(written === undefined ? {} : { fix: `write ${written}` }) }
}

/** The problem shows the place: the text up to it, and what stands there. */
export function parseExportFilter(text: string): Parsed<string> {
  if (text.length > FILTER_MAX) return { problem: `is longer than ${FILTER_MAX} characters` }
  try {
    parseFilter(text)
    return { value: text }
  } catch (error) {
    if (!(error instanceof FilterError)) throw error
    const { position } = error
    const before = text.slice(Math.max(0, position - HINT_CHARACTERS), position)
    const place = clip(`${before}⟨here⟩${text.slice(position, position + HINT_CHARACTERS)}`, 100)
    return { problem: `cannot be used: ${error.message}, in ${JSON.stringify(place).slice(1, -1).replaceAll('\\"', '"')}` }
  }
}

export function parseExportFields(text: string): Parsed<ExportableField[]> {
  const names = text.split(/[\s,]+/).filter((name) => name !== '')
  if (names.length === 0) return { problem: 'names no field' }
  const unknown = names.filter((name) => !EXPORTABLE_FIELDS.some((field) => field === name))
  if (unknown.length > 0) return { problem: `has unknown fields (${unknown.slice(0, 5).map((name) => clip(name, 40)).join(', ')})` }
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice === undefined ? { value: names as ExportableField[] } : { problem: `names ${twice} twice` }
}
