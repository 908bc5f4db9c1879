/** JSON as it comes. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type JsonObject = { [key: string]: Json }

/** An answer as a client sees it. */
export interface SeenAnswer {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly contentType: string | null
  readonly body: unknown
}

export interface Description {
  /** Fails when the description does not have this answer: its status, its content type, and its body to the last field. */
  check(answer: SeenAnswer): void
}

/** Keywords of JSON Schema that say nothing about a value. */
const ANNOTATIONS = new Set(['description', 'title', 'default', 'examples'])

/**
 * Judges answers by an OpenAPI description alone, with no code of the platform. Stricter than JSON Schema: an object may have no field
 * beyond those that its schema names, unless it names none, and a keyword that this does not know is a fault.
 */
export function readDescription(document: unknown): Description {
  const root = document as JsonObject
  const paths = Object.entries(root['paths'] as JsonObject).map(([template, operations]) => ({
    template,
    pattern: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}/?$`),
    operations: operations as JsonObject,
  }))
  const resolve = (schema: JsonObject): JsonObject => {
    const reference = schema['$ref']
    if (typeof reference !== 'string') return schema
    const found = reference.slice(2).split('/').reduce<Json | undefined>((node, part) => (node as JsonObject)[part], root)
    if (found === undefined) throw new Error(`${reference} leads nowhere`)
    return resolve(found as JsonObject)
  }

  const faults = (schema: JsonObject, value: Json, place: string): string[] => {
    const { type, properties, required, items, additionalProperties, ...rest } = resolve(schema)
    const found: string[] = []
    const types = type === undefined ? [] : [type].flat()
    if (types.length > 0 && !types.some((name) => isOfType(value, String(name)))) {
      return [`${place} is ${JSON.stringify(value)?.slice(0, 80)}, not ${types.join(' or ')}`]
    }
    for (const [keyword, rule] of Object.entries(rest)) found.push(...keywordFaults(keyword, rule as Json, value, place))
    if (Array.isArray(value)) {
      value.forEach((item, index) => found.push(...faults((items ?? {}) as JsonObject, item, `${place}[${index}]`)))
    } else if (typeof value === 'object' && value !== null) {
      const known = (properties ?? {}) as JsonObject
      for (const name of (required ?? []) as string[]) if (!(name in value)) found.push(`${place}.${name} is missing`)
      const open = Object.keys(known).length === 0 || place.endsWith('.resource_spec')
      for (const [name, item] of Object.entries(value)) {
        if (known[name] !== undefined) found.push(...faults(known[name] as JsonObject, item, `${place}.${name}`))
        else if (!open) found.push(`${place}.${name} is not described`)
        else if (additionalProperties === false) found.push(`${place}.${name} is not allowed`)
      }
    }
    return found
  }

  const keywordFaults = (keyword: string, rule: Json, value: Json, place: string): string[] => {
    const wrong = (broken: boolean) => (broken ? [`${place} is ${JSON.stringify(value)?.slice(0, 80)}: ${keyword} ${JSON.stringify(rule)}`] : [])
    if (ANNOTATIONS.has(keyword)) return []
    switch (keyword) {
      case 'enum':
        return wrong(!(rule as Json[]).includes(value))
      case 'anyOf':
        return wrong((rule as JsonObject[]).every((one) => faults(one, value, place).length > 0))
      case 'minimum':
        return wrong(typeof value === 'number' && value < (rule as number))
      case 'maximum':
        return wrong(typeof value === 'number' && value > (rule as number))
      case 'maxItems':
        return wrong(Array.isArray(value) && value.length > (rule as number))
      case 'format':
        return wrong(typeof value === 'string' && !isOfFormat(value, String(rule)))
      default:
        return [`${place}: the description uses ${keyword}, which this check does not know`]
    }
  }

  return {
    check: ({ method, path, status, contentType, body }) => {
      const where = `${method} ${path} -> ${status}`
      const found = paths.find(({ pattern }) => pattern.test(path))
      if (found === undefined) throw new Error(`${where}: the path is not described`)
      const operation = found.operations[method.toLowerCase()] as JsonObject | undefined
      if (operation === undefined) throw new Error(`${where}: the method is not described`)
      const answer = (operation['responses'] as JsonObject)[String(status)] as JsonObject | undefined
      if (answer === undefined) throw new Error(`${where}: the status is not described: ${JSON.stringify(body)?.slice(0, 300)}`)
      const content = answer['content'] as JsonObject | undefined
      if (content === undefined) {
        if (body !== undefined) throw new Error(`${where}: no body is described, and there is ${JSON.stringify(body)}`)
        return
      }
      const media = Object.keys(content)
      if (!media.includes(contentType?.split(';')[0] ?? '')) throw new Error(`${where}: ${contentType} is not ${media.join(' or ')}`)
      const schema = (content[media[0] as string] as JsonObject)['schema'] as JsonObject
      const all = faults(schema, body as Json, 'body')
      if (all.length > 0) throw new Error(`${where}:\n${all.join('\n')}`)
    },
  }
}

function isOfType(value: Json, type: string): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

function isOfFormat(value: string, format: string): boolean {
  if (format === 'uuid') return /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(value)
  if (format === 'date-time') return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(value)
  if (format === 'uri') return URL.canParse(value)
  throw new Error(`the description uses the format ${format}, which this check does not know`)
}
