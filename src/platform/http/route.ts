import type { Context, Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { z } from 'zod'
import { type Dialect, fromDialect, locToDialect, textToDialect, toDialect } from '../../contract/dialects.ts'
import type { Caller } from '../workspaces/authenticate.ts'
import { readBody } from './body.ts'
import { parseJsonBody } from './json.ts'
import { type Inputs, validateInputs } from './validate.ts'

/** What a route's answer with some status looks like. */
export interface AnswerDefinition {
  readonly description: string
  readonly schema?: z.ZodType
}

/** A route as data: enough to judge its input, to mount it, and to describe it in OpenAPI. */
export interface RouteDefinition<Path extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly method: 'get' | 'post' | 'patch' | 'delete'
  /** In OpenAPI's form: `/v2/deployments/{deployment_id}`. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly params?: Path
  readonly query?: Query
  /** Query parameters that are lists: given once for each item. */
  readonly repeated?: readonly string[]
  readonly body?: Body
  /** Answers of its own; those that every route may give are added by the description. */
  readonly answers: Readonly<Record<number, AnswerDefinition>>
}

export interface RouteInput<Path, Query, Body> {
  readonly params: Path
  readonly query: Query
  readonly body: Body
  readonly caller: Caller
  /** Scheme and authority by which the caller reaches the platform: addresses in answers begin with it. */
  readonly origin: string
}

export interface Answer {
  readonly status: number
  readonly body?: unknown
}

export interface Route {
  readonly definition: RouteDefinition<z.ZodType, z.ZodType, z.ZodType>
  readonly handle: (input: RouteInput<unknown, unknown, unknown>) => Promise<Answer>
}

/** Ties a definition to its handler; the handler's input has the types that the schemas put out. */
export function defineRoute<Path extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  definition: RouteDefinition<Path, Query, Body>,
  handle: (input: RouteInput<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<Answer>,
): Route {
  return {
    definition: definition as unknown as Route['definition'],
    handle: handle as unknown as Route['handle'],
  }
}

/** What a mounted route needs to know of the rest. */
export interface RouteContext {
  readonly authenticate: (request: Request) => Promise<Caller>
  readonly dialect: Dialect
  /** Where clients reach the platform; absent: where the request says that it was sent. */
  readonly publicUrl?: string | undefined
}

/** Mounts a route: the caller is known first, then all input is judged together, then the handler runs. */
export function mountRoute(app: Hono, { definition, handle }: Route, { authenticate, dialect, publicUrl }: RouteContext): void {
  app.on(definition.method.toUpperCase(), honoPath(definition.path), async (c) => {
    const caller = await authenticate(c.req.raw)
    const url = new URL(c.req.url)
    const validated = validateInputs(await readInputs(definition, c, url))
    if (!validated.ok) {
      const detail = validated.errors.map((error) => ({
        ...error,
        loc: locToDialect(error.loc, dialect),
        msg: textToDialect(error.msg, dialect),
      }))
      return c.json({ detail }, 422)
    }
    const { path, query, body } = validated.values
    const answer = await handle({ params: path, query, body, caller, origin: publicUrl ?? url.origin })
    if (answer.body === undefined) return c.body(null, answer.status as 204)
    return c.json(toDialect(answer.body, dialect) as object, answer.status as ContentfulStatusCode)
  })
}

async function readInputs(definition: Route['definition'], c: Context, url: URL): Promise<Inputs> {
  const inputs: Inputs = {}
  if (definition.params !== undefined) inputs.path = { schema: definition.params, value: c.req.param() }
  if (definition.query !== undefined) inputs.query = { schema: definition.query, value: readQuery(url.searchParams, definition.repeated) }
  if (definition.body !== undefined) {
    const json = parseJsonBody(await readBody(c.req.raw))
    inputs.body = json.ok
      ? { schema: definition.body, value: json.value, prepare: fromDialect }
      : { schema: definition.body, value: null, errors: json.errors }
  }
  return inputs
}

/** `/a/{b}` in Hono's form: `/a/:b`. */
function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** A parameter given twice counts with its last value, as the hosted service has it; a list has all. */
function readQuery(parameters: URLSearchParams, repeated: readonly string[] = []): Record<string, string | string[]> {
  const query = new Map<string, string | string[]>(parameters)
  for (const name of repeated) if (parameters.has(name)) query.set(name, parameters.getAll(name))
  return Object.fromEntries(query)
}
