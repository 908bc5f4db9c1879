import type { Area, Evidence, Named, RouteFidelity } from '../src/contract/fidelity/evidence.ts'
import type { ContractSurface } from './contract-surface.ts'

/** All evidence, as src/contract/fidelity has it. */
export type Fidelity = {
  described: readonly Area[]
  /** Served, and not described. */
  undescribed: Area
  areas: readonly Area[]
  everyRoute: Readonly<Record<number, Evidence>>
  everyBody: Readonly<Record<number, Evidence>>
  values: Readonly<Record<string, { values: Named }>>
  reads: Readonly<Record<string, string>>
  parts: Readonly<Record<string, string>>
}

type JsonSchema = { $ref?: string; properties?: Record<string, JsonSchema>; items?: JsonSchema; anyOf?: JsonSchema[] }
type Content = { content?: Record<string, { schema?: JsonSchema }> }
type Operation = { parameters?: { name: string; in: string }[]; requestBody?: Content; responses: Record<string, Content> }

/** The platform's description of itself, as far as it is looked at here. */
export type Description = { paths: Record<string, Record<string, Operation>> }

/** What evidence is compared with. `served`: every route of the platform, like `GET /ok`. */
export type Surface = { contract: ContractSurface; description: Description; served: readonly string[] }

/** Lists that are no answer of the service: parts of other lists, and names that only this project uses. */
const NO_VALUES =
  /^(?:FINAL_|FAILED_|FIXED_|EXPORTABLE_FIELDS$|FILTER_|JSON_FIELDS$|SEARCHED_FIELDS$|COLLECTIONS$|RUN_PART_FIELDS$|WRITE_ARGUMENTS$)/

/** What has no evidence, and evidence for what is not there: one sentence each. */
export function fidelityFaults(fidelity: Fidelity, { contract, description, served }: Surface): string[] {
  return [
    ...objectFaults(fidelity, contract),
    ...valueFaults(fidelity, contract),
    ...routeFaults(fidelity, contract, description),
    ...undescribedFaults(fidelity, description, served),
  ]
}

function objectFaults({ areas, reads, parts }: Fidelity, { objects }: ContractSurface): string[] {
  const known = new Map(areas.flatMap((area) => Object.entries(area.objects)).map(([name, { fields }]) => [name, names(fields)]))
  const faults = [...objects].flatMap(([name, fields]) => {
    const own = known.get(name)
    if (own !== undefined) return differences(`${name}`, { there: fields, evident: own })
    if (name in parts) return []
    const read = known.get(reads[name] ?? '')
    if (read === undefined) return [`${name} has no evidence`]
    return fields
      .filter((field) => !isRead(field, read, known))
      .map((field) => `${name} reads ${field}, which ${reads[name]} does not have`)
  })
  const gone = [...known.keys(), ...Object.keys(reads), ...Object.keys(parts)].filter((name) => !objects.has(name))
  return [...faults, ...gone.map((name) => `there is evidence for ${name}, which src/contract does not export`)]
}

/** A field of an inner object may stand with an object of its own. */
function isRead(field: string, read: readonly string[], known: ReadonlyMap<string, readonly string[]>): boolean {
  if (read.includes(field)) return true
  const [outer = '', inner] = field.split('.')
  return inner !== undefined && read.includes(outer) && [...known.values()].some((fields) => fields.includes(inner))
}

function valueFaults({ values }: Fidelity, { lists }: ContractSurface): string[] {
  const wanted = [...lists].filter(([name]) => !NO_VALUES.test(name))
  return [
    ...wanted.flatMap(([name, words]) =>
      values[name] === undefined
        ? [`the words of ${name} have no evidence`]
        : differences(name, { there: words, evident: names(values[name].values) }),
    ),
    ...Object.keys(values)
      .filter((name) => !lists.has(name))
      .map((name) => `there is evidence for ${name}, which src/contract does not export`),
  ]
}

function routeFaults(fidelity: Fidelity, { objects }: ContractSurface, { paths }: Description): string[] {
  const evident = new Map(fidelity.described.flatMap((area) => Object.entries(area.routes)))
  const there = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  )
  const bodies = new Set([...objects.values()].map(topLevel))
  return [
    ...there.flatMap(([key, operation]) => {
      const route = evident.get(key)
      return route === undefined ? [`${key} has no evidence`] : operationFaults(key, { route, operation, fidelity, bodies })
    }),
    ...[...evident.keys()]
      .filter((key) => !there.some(([described]) => described === key))
      .map((key) => `there is evidence for ${key}, which the platform does not describe`),
  ]
}

/** The main API serves its routes a second time below `/api/v1`. */
function undescribedFaults({ undescribed }: Fidelity, { paths }: Description, served: readonly string[]): string[] {
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const bare = served.map((key) => key.replace(' /api/v1/', ' /'))
  const there = [...new Set(served.filter((key, index) => !described.includes(key) && !described.includes(bare[index] ?? '')))]
  const once = there.filter((key) => !key.includes(' /api/v1/'))
  return differences('the platform serves', { there: once, evident: Object.keys(undescribed.routes) })
}

function operationFaults(
  key: string,
  {
    route,
    operation,
    fidelity,
    bodies,
  }: { route: RouteFidelity; operation: Operation; fidelity: Fidelity; bodies: ReadonlySet<string> },
): string[] {
  const common = { ...fidelity.everyRoute, ...(operation.requestBody === undefined ? {} : fidelity.everyBody) }
  const query = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query').map(({ name }) => name)
  return [
    ...differences(`${key}: status`, {
      there: Object.keys(operation.responses),
      evident: Object.keys({ ...common, ...route.answers }),
    }),
    ...differences(`${key}: parameter`, { there: query, evident: names(route.query ?? []) }),
    ...bodyFaults(`${key}: body`, { schema: schemaOf(operation.requestBody), evident: route.body, bodies }),
    ...Object.entries(operation.responses).flatMap(([status, answer]) =>
      bodyFaults(`${key}: ${status}`, {
        schema: schemaOf(answer),
        evident: Number(status) < 300 ? route.answer : undefined,
        bodies,
      }),
    ),
  ]
}

/** The fields of a body are those of an object of the contract, or have evidence with the route. */
function bodyFaults(
  what: string,
  { schema, evident, bodies }: { schema: JsonSchema | undefined; evident: Named | undefined; bodies: ReadonlySet<string> },
): string[] {
  const fields = Object.keys(schema?.properties ?? {})
  if (evident !== undefined)
    return differences(what, { there: fields, evident: names(evident).filter((name) => !name.includes('.')) })
  if (schema === undefined || schema.$ref !== undefined || fields.length === 0 || bodies.has(topLevel(fields))) return []
  return [`${what} has the fields ${fields.join(', ')}, which are no object of src/contract and have no evidence`]
}

/** The object in a body; that of the items of a list, or of the part that is not null. */
function schemaOf(content: Content | undefined): JsonSchema | undefined {
  let schema = content?.content?.['application/json']?.schema
  while (schema !== undefined && schema.properties === undefined && schema.$ref === undefined) {
    const inner: JsonSchema | undefined = schema.items ?? schema.anyOf?.[0]
    if (inner === undefined) return schema
    schema = inner
  }
  return schema
}

function differences(what: string, { there, evident }: { there: readonly string[]; evident: readonly string[] }): string[] {
  const twice = evident.filter((name, index) => evident.indexOf(name) !== index)
  return [
    ...there.filter((name) => !evident.includes(name)).map((name) => `${what} ${name} has no evidence`),
    ...evident.filter((name) => !there.includes(name)).map((name) => `${what} ${name} has evidence and is not there`),
    ...twice.map((name) => `${what} ${name} has evidence twice`),
  ]
}

function names(named: Named): string[] {
  return named.flatMap(([, list]) => list)
}

function topLevel(fields: readonly string[]): string {
  return fields
    .filter((field) => !field.includes('.'))
    .toSorted()
    .join(' ')
}
