import type { z } from 'zod'
import { projectFiles } from './files.ts'
import { inRoot } from './root.ts'

/** What the contract's modules export: objects with their fields (those of inner objects with a dot), and lists of words. */
export type ContractSurface = { objects: Map<string, readonly string[]>; lists: Map<string, readonly string[]> }

type Schema = z.core.$ZodType
type Exported = Map<Schema, string>

/** Loads every module of src/contract but the evidence itself. */
export async function readContract(): Promise<ContractSurface> {
  const paths = projectFiles('src/contract').filter((path) => path.endsWith('.ts') && !path.includes('/fidelity/'))
  const modules = await Promise.all(paths.map((path) => import(inRoot(path)) as Promise<Record<string, unknown>>))
  const exports = modules.flatMap((module) => Object.entries(module))
  const schemas: Exported = new Map()
  for (const [name, value] of exports) if (isSchema(value) && !schemas.has(value)) schemas.set(value, name)
  const objects = [...schemas].map(
    ([schema, name]) => [name, ownObjects(schema, schemas).flatMap((object) => fieldsOf(object, schemas))] as const,
  )
  return {
    objects: new Map(objects.filter(([, fields]) => fields.length > 0)),
    lists: new Map(exports.filter((entry): entry is [string, readonly string[]] => isWords(entry[1]))),
  }
}

/** The objects that a schema is made of, without those that are exported by a name of their own. */
function ownObjects(schema: Schema, exported: Exported): Schema[] {
  return objectsIn(schema).filter((object) => object === schema || !exported.has(object))
}

function objectsIn(schema: Schema): Schema[] {
  const { def } = schema._zod as unknown as { def: Record<string, unknown> & { type: string } }
  if (def.type === 'object') return [schema]
  const inner = [
    def['innerType'],
    def['element'],
    def['in'],
    def['out'],
    def['valueType'],
    ...((def['options'] as unknown[]) ?? []),
  ]
  return inner.filter(isSchema).flatMap(objectsIn)
}

function fieldsOf(object: Schema, exported: Exported, prefix = ''): string[] {
  const { shape } = (object._zod as unknown as { def: { shape: Record<string, Schema> } }).def
  return Object.entries(shape).flatMap(([name, field]) => {
    const inner = objectsIn(field).filter((one) => !exported.has(one))
    return [prefix + name, ...inner.flatMap((one) => fieldsOf(one, exported, `${prefix}${name}.`))]
  })
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && '_zod' in value
}

function isWords(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string')
}
