import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'

/**
 * GitHub's own description of its REST API, from npm, as a judge of requests and answers: the operations that are used, as
 * `scripts/github-description.ts` takes them from the package.
 */

type Schema = Record<string, unknown>
type Parameter = { name: string; in: string; required?: boolean; schema: Schema }
type Operation = {
  operationId: string
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, Response | { $ref: string }>
}
type Response = { content?: Record<string, { schema: Schema }> }
type Description = { paths: Record<string, Record<string, Operation>>; components: Record<string, Record<string, unknown>> }

export type Call = { method: string; path: string; query: URLSearchParams; body: unknown }

export type Described = {
  operationId: string
  /** The values in the path, by name. */
  values: Record<string, string>
  /** What is wrong with the request; empty when nothing is. */
  flawsOfRequest: (call: Call) => string[]
  flawsOfAnswer: (answer: { status: number; body: unknown }) => string[]
}

const ID = 'github'
const methods = ['get', 'post', 'patch', 'put', 'delete']

let loaded: { description: Description; ajv: Ajv } | undefined

/** Reads the description once in a process; only what a test uses is ever compiled. */
function load(): { description: Description; ajv: Ajv } {
  if (loaded !== undefined) return loaded
  const file = new URL('github-openapi.json', import.meta.url)
  const description = JSON.parse(readFileSync(file, 'utf8')) as Description
  const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false, coerceTypes: false })
  ajvFormats.default(ajv)
  const uri = ajvFormats.default.get('uri') as (text: string) => boolean
  // GitHub itself answers with an empty text where an address is not set, and says so in its defaults.
  ajv.addFormat('uri', (text) => text === '' || uri(text))
  ajv.addSchema(withoutNullable(description) as Schema, ID)
  loaded = { description, ajv }
  return loaded
}

/** OpenAPI 3.0 writes "or null" beside any schema; JSON Schema knows it only as one of several. */
function withoutNullable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullable)
  if (typeof value !== 'object' || value === null) return value
  const copy: Schema = {}
  for (const [key, part] of Object.entries(value))
    if (key !== 'nullable' || typeof part !== 'boolean') copy[key] = withoutNullable(part)
  return (value as Schema)['nullable'] === true ? { anyOf: [copy, { type: 'null' }] } : copy
}

const compiled = new Map<string, ValidateFunction>()

function flaws(pointer: string, value: unknown): string[] {
  const { ajv } = load()
  const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `${ID}#${pointer}` })
  compiled.set(pointer, validate)
  if (validate(value) === true) return []
  return (validate.errors ?? [])
    .slice(0, 5)
    .map(({ instancePath, message }) => `${instancePath || '(all)'} ${message ?? 'is wrong'}`)
}

/** An example of the description, for a double to answer with. */
export function exampleOf(name: string): Record<string, unknown> {
  const examples = load().description.components['examples'] as Record<string, { value: Record<string, unknown> }>
  const example = examples[name]
  if (example === undefined) throw new Error(`GitHub's description has no example '${name}'`)
  return structuredClone(example.value)
}

/** Where GitHub is known to answer otherwise than its description says: the repository of a fork that has been deleted is null. */
const KNOWN_DEVIATIONS = new Set(['pulls/get: /head/repo must be object'])

/** The operation of a method and a path (without the prefix of a server); undefined when GitHub has none. */
export function describe(method: string, path: string): Described | undefined {
  const { description } = load()
  for (const [template, item] of Object.entries(description.paths)) {
    const values = matchPath(template, path)
    const operation = values === null ? undefined : item[method.toLowerCase()]
    if (values === null || operation === undefined || !methods.includes(method.toLowerCase())) continue
    const pointer = `/paths/${escape(template)}/${method.toLowerCase()}`
    return {
      operationId: operation.operationId,
      values,
      flawsOfRequest: (call) => [...flawsOfParameters(operation, values, call), ...flawsOfBody(operation, pointer, call.body)],
      flawsOfAnswer: ({ status, body }) => {
        const found = flawsOfAnswer({ operation, pointer, status, body })
        return found.filter((flaw) => !KNOWN_DEVIATIONS.has(`${operation.operationId}: ${flaw}`))
      },
    }
  }
  return undefined
}

function flawsOfParameters(operation: Operation, values: Record<string, string>, { query }: Call): string[] {
  const found: string[] = []
  const known = new Set<string>()
  for (const entry of operation.parameters ?? []) {
    const pointer = '$ref' in entry ? entry.$ref.slice(1) : undefined
    const parameter = pointer === undefined ? (entry as Parameter) : (at(pointer) as Parameter)
    known.add(parameter.name)
    const text = parameter.in === 'path' ? values[parameter.name] : query.get(parameter.name)
    if (text === undefined || text === null) {
      if (parameter.required === true) found.push(`the parameter ${parameter.name} is missing`)
      continue
    }
    const { type } = parameter.schema
    const value = type === 'integer' ? (/^-?\d+$/.test(text) ? Number(text) : text) : type === 'boolean' ? text === 'true' : text
    const { ajv } = load()
    const schema = withoutNullable(parameter.schema) as Schema
    if (!ajv.validate(schema, value)) found.push(`the parameter ${parameter.name} is '${text}': ${ajv.errorsText()}`)
  }
  for (const name of query.keys())
    if (!known.has(name)) found.push(`the parameter ${name} is not one of ${operation.operationId}`)
  return found
}

/** GitHub ignores fields that it does not know: here they are flaws, since somebody meant something by them. */
function flawsOfBody(operation: Operation, pointer: string, body: unknown): string[] {
  const described = operation.requestBody
  if (described === undefined) return body === null ? [] : ['it has a body, and this operation takes none']
  if (body === null) return described.required === true ? ['it has no body'] : []
  const { schema } = described.content['application/json'] ?? {}
  const known = Object.keys((schema?.['properties'] as Schema | undefined) ?? {})
  const unknown = typeof body === 'object' ? Object.keys(body as Schema).filter((name) => !known.includes(name)) : []
  return [
    ...flaws(`${pointer}/requestBody/content/application~1json/schema`, body),
    ...unknown.map((name) => `the field ${name} is not one of ${operation.operationId}`),
  ]
}

function flawsOfAnswer({
  operation,
  pointer,
  status,
  body,
}: {
  operation: Operation
  pointer: string
  status: number
  body: unknown
}): string[] {
  const entry = operation.responses[String(status)]
  // Refusals of the token, rate limits and outages can come from anywhere; the description names them for some operations only.
  if (entry === undefined)
    return status >= 400 ? flaws('/components/schemas/basic-error', body) : [`${status} is no answer of ${operation.operationId}`]
  const response = '$ref' in entry ? (at(entry.$ref.slice(1)) as Response) : entry
  if (response.content === undefined)
    return body === undefined || status >= 400 ? [] : ['it has a body, and there should be none']
  const where = '$ref' in entry ? entry.$ref.slice(1) : `${pointer}/responses/${status}`
  return flaws(`${where}/content/application~1json/schema`, body)
}

function at(pointer: string): unknown {
  const { description } = load()
  return pointer
    .split('/')
    .slice(1)
    .reduce<unknown>((value, key) => (value as Schema)[key.replaceAll('~1', '/').replaceAll('~0', '~')], description)
}

function matchPath(template: string, path: string): Record<string, string> | null {
  const [wanted, given] = [template.split('/'), path.split('/')]
  if (wanted.length !== given.length) return null
  const values: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? ''
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    if (name === undefined && part !== text) return null
    if (name !== undefined && text === '') return null
    if (name !== undefined) values[name] = decodeURIComponent(text)
  }
  return values
}

/** A key in a JSON pointer that stands in the fragment of an address. */
function escape(key: string): string {
  return encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))
}
