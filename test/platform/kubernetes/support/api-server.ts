import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type Objects, type Stored, TooOld } from './objects.ts'
import { ruleFaults } from './rules.ts'
import { fieldFaults, schemaFaults } from './schema.ts'

/** What a request asks for. */
export interface ApiRequest {
  readonly verb: string
  readonly group: string
  /** With its part: `pods/log`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string | null
  readonly query: URLSearchParams
}

export interface ApiServerOptions {
  readonly objects: Objects
  readonly namespaces: readonly string[]
  /** Whether the platform may: what a Role says. */
  readonly allowed: (request: ApiRequest) => boolean
  /** The answer waits for it. */
  readonly onCreate: (collection: string, object: Stored) => Promise<void>
  readonly onDelete: (
    collection: string,
    object: Stored,
    options: { propagation: string | null; graceSeconds: number | null },
  ) => void
  /** Writes the log of a pod; false when its container has not begun. */
  readonly onLog: (pod: Stored, query: URLSearchParams, response: ServerResponse) => boolean
  readonly tls?: { readonly key: string; readonly cert: string; readonly ca: string } | undefined
}

export interface ApiServer {
  readonly url: string
  readonly requests: ApiRequest[]
  /** What no real server would take. */
  readonly faults: string[]
  readonly trouble: {
    /** The next requests that a test picks are answered with a status, or cut off (`status` null) before or after they were carried out. */
    next: {
      readonly match: (request: ApiRequest) => boolean
      times: number
      readonly status: number | null
      readonly after?: boolean
      readonly message?: string
    }[]
    /** Nothing answers at all. */
    away: boolean
    /** How a watch that is too old hears of it. */
    goneAs: 'status' | 'event'
  }
  /** Ends connections in their midst. */
  cut(): void
  close(): Promise<void>
}

const COLLECTIONS = ['deployments', 'pods', 'secrets', 'services', 'events']

/** Answers as the API server of a cluster does, as far as an agent's life needs it. Checks each request as strictly as a real one. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const sockets = new Set<Socket>()
  const requests: ApiRequest[] = []
  const faults: string[] = []
  const trouble: ApiServer['trouble'] = { next: [], away: false, goneAs: 'event' }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const asked = read(request)
    const body = await bodyOf(request)
    if (asked === null) {
      faults.push(`${request.method} ${request.url}: no such path here`)
      return refuse(response, 404, 'the server could not find the requested resource')
    }
    requests.push(asked)
    const planned = trouble.next.find((one) => one.times > 0 && one.match(asked))
    if (planned !== undefined) {
      planned.times -= 1
      if (planned.after === true) await carryOut(options, { asked, body, response: deaf(), faults, trouble })
      if (planned.status === null) return void request.socket.destroy()
      const headers = planned.status === 429 ? { 'Retry-After': '1' } : {}
      return refuse(response, planned.status, planned.message ?? 'the server is currently unable to handle the request', headers)
    }
    await carryOut(options, { asked, body, response, faults, trouble })
  }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    if (trouble.away) return void request.socket.destroy()
    handle(request, response).catch((error: Error) => {
      faults.push(`the double failed: ${error.stack}`)
      response.destroy()
    })
  }
  const { tls } = options
  const server: Server =
    tls === undefined
      ? createServer(listener)
      : createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true }, listener)
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  server.on(tls === undefined ? 'connection' : 'secureConnection', keep)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    trouble,
    cut,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cut()
      }),
  }
}

function read({ method = 'GET', url = '/' }: IncomingMessage): ApiRequest | null {
  const { pathname, searchParams: query } = new URL(url, 'http://double')
  const [, core, group, namespace = '', resource = '', name = null, part] =
    /^\/(?:(api\/v1)|apis\/([a-z0-9.]+)\/v1)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(pathname) ?? []
  if (core === undefined && group === undefined) return null
  const reading = name !== null ? 'get' : query.get('watch') === 'true' ? 'watch' : 'list'
  const verb = { GET: reading, POST: 'create', DELETE: 'delete', PATCH: 'patch', PUT: 'update' }[method] ?? method
  return { verb, group: group ?? '', resource: part === undefined ? resource : `${resource}/${part}`, namespace, name, query }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string
  return text === '' ? undefined : JSON.parse(text)
}

interface Work {
  readonly asked: ApiRequest
  readonly body: unknown
  readonly response: ServerResponse
  readonly faults: string[]
  readonly trouble: ApiServer['trouble']
}

async function carryOut(options: ApiServerOptions, { asked, body, response, faults, trouble }: Work): Promise<void> {
  const { objects } = options
  const { verb, resource, namespace, name, group, query } = asked
  if (resource === 'selfsubjectaccessreviews') return review(options, { body, response, faults })
  const kind = group === '' ? resource : `${resource}.${group}`
  if (!options.allowed(asked)) {
    const who = 'User "system:serviceaccount:agent-platform:agent-platform"'
    return refuse(
      response,
      403,
      `${kind} is forbidden: ${who} cannot ${verb} resource "${resource}" in API group "${group}" in the namespace "${namespace}"`,
    )
  }
  if (resource === 'pods/log') {
    const pod = objects.get('pods', { namespace, name: name ?? '' })
    if (pod === undefined) return refuse(response, 404, `pods "${name}" not found`)
    if (!options.onLog(pod, query, response))
      refuse(response, 400, `container "agent" in pod "${name}" is waiting to start: ContainerCreating`)
    return
  }
  if (!COLLECTIONS.includes(resource)) return refuse(response, 404, 'the server could not find the requested resource')
  if (verb === 'create') return create(options, { asked, body: body as Stored, response, faults })
  if (name === null) return verb === 'watch' ? watch(objects, { asked, response, trouble }) : list(objects, asked, response)
  const object = objects.get(resource, { namespace, name })
  if (object === undefined) return refuse(response, 404, `${kind} "${name}" not found`)
  if (verb === 'delete') {
    if (body !== undefined) faults.push(...fieldFaults(body, { type: 'V1DeleteOptions', at: 'DeleteOptions' }))
    const grace = query.get('gracePeriodSeconds')
    options.onDelete(resource, object, {
      propagation: query.get('propagationPolicy'),
      graceSeconds: grace === null ? null : Number(grace),
    })
  } else if (verb !== 'get') faults.push(`${verb} ${resource}: not here`)
  answer(response, 200, object)
}

function review(
  { allowed }: ApiServerOptions,
  { body, response, faults }: { body: unknown; response: ServerResponse; faults: string[] },
): void {
  faults.push(...schemaFaults(body))
  const { spec } = body as { spec: { resourceAttributes: Record<string, string> } }
  const { verb = '', group = '', resource = '', namespace = '' } = spec.resourceAttributes
  answer(response, 201, {
    ...(body as object),
    status: { allowed: allowed({ verb, group, resource, namespace, name: null, query: new URLSearchParams() }) },
  })
}

async function create(
  options: ApiServerOptions,
  { asked, body, response, faults }: { asked: ApiRequest; body: Stored; response: ServerResponse; faults: string[] },
): Promise<void> {
  const { namespace, resource } = asked
  const { name } = body.metadata
  faults.push(...schemaFaults(body))
  if (body.metadata.namespace !== namespace)
    faults.push(`the namespace of the object (${body.metadata.namespace}) is not that of the path`)
  if (!options.namespaces.includes(namespace)) return refuse(response, 404, `namespaces "${namespace}" not found`)
  if (options.objects.get(resource, { namespace, name }) !== undefined)
    return refuse(response, 409, `${resource} "${name}" already exists`)
  const broken = ruleFaults(body as never)
  if (broken.length > 0) return refuse(response, 422, `${body.kind} "${name}" is invalid: ${broken.join(', ')}`)
  const { stringData, ...rest } = body as Stored & { stringData?: Record<string, string> }
  const data = Object.fromEntries(
    Object.entries(stringData ?? {}).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  )
  const object = options.objects.add(resource, stringData === undefined ? rest : { ...rest, data })
  await options.onCreate(resource, object)
  answer(response, 201, object)
}

function list(objects: Objects, { resource, namespace, query }: ApiRequest, response: ServerResponse): void {
  const found = objects.all(resource).filter((object) => object.metadata.namespace === namespace && matches(object, query))
  const limit = Number(query.get('limit') ?? found.length)
  const from = Number(query.get('continue') ?? 0)
  const more = from + limit < found.length ? { continue: String(from + limit) } : {}
  answer(response, 200, {
    kind: 'List',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(objects.version()), ...more },
    items: found.slice(from, from + limit),
  })
}

function watch(
  objects: Objects,
  { asked, response, trouble }: { asked: ApiRequest; response: ServerResponse; trouble: ApiServer['trouble'] },
): void {
  const { resource, namespace, query } = asked
  const concerns = (past: { collection: string; object: Stored }) =>
    past.collection === resource && past.object.metadata.namespace === namespace && matches(past.object, query)
  const write = ({ type, object }: { type: string; object: object }) => response.write(`${JSON.stringify({ type, object })}\n`)
  try {
    const missed = objects.since(resource, Number(query.get('resourceVersion'))).filter(concerns)
    response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders()
    for (const past of missed) write(past)
    const leave = objects.onChange((past) => concerns(past) && write(past))
    response.once('close', leave)
    const end = setTimeout(() => response.end(), Number(query.get('timeoutSeconds') ?? 60) * 1000)
    response.once('close', () => clearTimeout(end))
  } catch (error) {
    if (!(error instanceof TooOld)) throw error
    if (trouble.goneAs === 'status') return refuse(response, 410, error.message)
    response.writeHead(200, { 'Content-Type': 'application/json' })
    write({ type: 'ERROR', object: statusObject(410, error.message) })
    response.end()
  }
}

function matches({ metadata, involvedObject, type }: Stored, query: URLSearchParams): boolean {
  const pairs = (text: string | null) =>
    (text ?? '')
      .split(',')
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('='))
  const fields: Record<string, unknown> = {
    'metadata.name': metadata.name,
    'involvedObject.uid': (involvedObject as { uid?: string } | undefined)?.uid,
    type,
  }
  return (
    pairs(query.get('labelSelector')).every(([key = '', value]) => metadata.labels?.[key] === value) &&
    pairs(query.get('fieldSelector')).every(([key = '', value]) => fields[key] === value)
  )
}

function statusObject(code: number, message: string): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: code === 410 ? 'Expired' : 'Unknown',
    code,
  }
}

function refuse(response: ServerResponse, code: number, message: string, headers: Record<string, string> = {}): void {
  answer(response, code, statusObject(code, message), headers)
}

function answer(response: ServerResponse, code: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(code, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** For a request that is carried out, and whose answer is lost. */
function deaf(): ServerResponse {
  const self: unknown = new Proxy(() => self, { get: () => () => self })
  return self as ServerResponse
}
