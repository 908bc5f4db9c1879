import { isRecord } from './record.ts'
import { z } from 'zod'
import { VENDOR_EXPORT_STATUS } from './export-status.ts'

/**
 * The two tongues of the service. The specification's names are the contract inside this project; the hosted
 * vendor service says `github` for `git_host` and `langgraph_config_path` for `graph_config_path`. Only this file knows.
 */
export const DIALECTS = ['spec', 'vendor'] as const
export const dialectSchema = z.enum(DIALECTS)
export type Dialect = z.infer<typeof dialectSchema>

type Words = ReadonlyMap<unknown, string>

const VENDOR_SOURCE: Words = new Map([['git_host', 'github']])
const SPEC_SOURCE: Words = new Map([['github', 'git_host']])
const VENDOR_FIELD: Words = new Map([['graph_config_path', 'langgraph_config_path']])
const SPEC_FIELD: Words = new Map([['langgraph_config_path', 'graph_config_path']])
const VENDOR_STATUS: Words = new Map(Object.entries(VENDOR_EXPORT_STATUS))

const VENDOR_WORD: Words = new Map([...VENDOR_SOURCE, ...VENDOR_FIELD, ...VENDOR_STATUS])
const VENDOR_WORDS = new RegExp(`\\b(?:${[...VENDOR_WORD.keys()].join('|')})\\b`, 'g')

/** The dialect of a control plane by its address: `vendor` under `langchain.com` and for paths that contain `/api-host`. */
export function dialectOf(controlPlaneUrl: string): Dialect {
  const { hostname, pathname } = new URL(controlPlaneUrl)
  const hosted = hostname === 'langchain.com' || hostname.endsWith('.langchain.com')
  return hosted || `${pathname}/`.includes('/api-host/') ? 'vendor' : 'spec'
}

/**
 * A body in the contract's names, brought into `dialect`: a deployment, a revision, a create or patch request, or a page of them; an
 * export, an export run, or a list of them, whose statuses the hosted service writes in Title Case.
 */
export function toDialect(body: unknown, dialect: Dialect): unknown {
  if (dialect === 'spec') return body
  if (Array.isArray(body)) return body.map((item) => toDialect(item, dialect))
  const translated = translate(body, VENDOR_SOURCE, VENDOR_FIELD)
  if (!isRecord(translated)) return translated
  const status = VENDOR_STATUS.get(translated['status'])
  return status === undefined ? translated : { ...translated, status }
}

/** A body in either dialect, brought into the contract's names. Unknown fields and values are kept as they are. */
export function fromDialect(body: unknown): unknown {
  return translate(body, SPEC_SOURCE, SPEC_FIELD)
}

/** A place in a request (`loc` of a validation error) in the words of `dialect`. */
export function locToDialect(loc: readonly (string | number)[], dialect: Dialect): (string | number)[] {
  return dialect === 'spec' ? [...loc] : loc.map((part) => VENDOR_FIELD.get(part) ?? part)
}

/** A sentence of ours in the words of `dialect`. */
export function textToDialect(text: string, dialect: Dialect): string {
  if (dialect === 'spec') return text
  return text.replace(VENDOR_WORDS, (word) => VENDOR_WORD.get(word) ?? word)
}

function translate(body: unknown, sources: Words, fields: Words): unknown {
  if (!isRecord(body)) return body
  const translated: Record<string, unknown> = { ...body }
  for (const key of ['source', 'revision_source']) {
    const source = sources.get(translated[key])
    if (source !== undefined) translated[key] = source
  }
  if (isRecord(translated['source_revision_config'])) {
    translated['source_revision_config'] = renameFields(translated['source_revision_config'], fields)
  }
  if (Array.isArray(translated['resources'])) {
    translated['resources'] = translated['resources'].map((resource) => translate(resource, sources, fields))
  }
  return translated
}

function renameFields(record: Record<string, unknown>, fields: Words): Record<string, unknown> {
  const renamed = new Map<string, unknown>()
  for (const [name, value] of Object.entries(record)) {
    const target = fields.get(name) ?? name
    // Both names in one body: the one that carries a value wins.
    if ((renamed.get(target) ?? null) === null) renamed.set(target, value)
  }
  return Object.fromEntries(renamed)
}
