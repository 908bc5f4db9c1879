import { request as startRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { type AgentAddress, type AgentProxyOptions, AGENTS_PREFIX, admit } from './admission.ts'
import { type Inbound, requestHeaders, responseHeaders } from './headers.ts'
import { refuse } from './refusal.ts'
import type { TargetUse } from './routes.ts'

/**
 * Handles `/agents/{slug}/…` (specification 4.2, 5.3): the key is checked before the agent sees anything, then both bodies are
 * streamed through as they come. A client that leaves ends the agent's request; an agent that dies in the middle of an answer
 * breaks the client's connection, so that half an answer never looks like a whole one.
 */
export function createAgentProxy(options: AgentProxyOptions): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    void admit(request, options).then(
      (admission) => {
        if (response.destroyed) return
        if ('refusal' in admission) refuse(request, response, admission.refusal)
        else forward({ request, response, address: admission.address, options })
      },
      () => refuse(request, response, { status: 503, detail: 'The API key could not be checked. Try again shortly.' }),
    )
  }
}

interface Forwarding {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly address: AgentAddress
  readonly options: AgentProxyOptions
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

function forward(forwarding: Forwarding, attempt = 1): void {
  const { request, response, address, options } = forwarding
  const use = options.routes.use(address.slug, {
    cut: () => {
      upstream.destroy()
      response.destroy()
    },
  })
  if (use === null) {
    refuse(request, response, { status: 503, detail: `The deployment ${address.slug} has no agent that runs. Try again shortly.` })
    return
  }
  const upstream: ClientRequest = connect(forwarding, use)
  const leave = () => {
    use.finish()
    if (!response.writableFinished) upstream.destroy()
  }
  response.once('close', leave)
  upstream.once('response', (answer) => relay(answer, forwarding, use))
  upstream.on('error', (error: NodeJS.ErrnoException) => {
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    response.off('close', leave)
    use.finish()
    options.onFault?.({ slug: address.slug, revisionId: use.target.revisionId, error })
    if (attempt === 1 && mayRepeat(request, error)) {
      forward(forwarding, attempt + 1)
      return
    }
    const reached = error.code !== 'ECONNREFUSED'
    const happened = reached ? 'closed the connection before it answered' : 'does not accept connections'
    refuse(request, response, { status: reached ? 502 : 503, detail: `The agent of ${address.slug} ${happened}. Try again shortly.` })
  })
  send(request, upstream)
}

function connect({ request, address }: Forwarding, { target, connections }: TargetUse): ClientRequest {
  const reusable = IDEMPOTENT.has(request.method ?? '')
  const headers = requestHeaders(inboundOf(request), target, AGENTS_PREFIX + address.slug)
  return startRequest({
    host: target.host,
    port: target.port,
    method: request.method,
    path: address.path,
    // What must not be sent twice gets a connection of its own: on a kept one, a reset would not tell whether it was received.
    agent: reusable ? connections : false,
    headers: reusable ? headers : [...headers, 'Connection', 'close'],
    setHost: false,
  })
}

/** Sends the client's body. It starts to flow when the agent has accepted the connection, so that until then it can be sent elsewhere. */
function send(request: IncomingMessage, upstream: ClientRequest): void {
  if (!hasBody(request)) {
    upstream.end()
    return
  }
  upstream.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', () => request.pipe(upstream))
    else request.pipe(upstream)
  })
}

function relay(answer: IncomingMessage, { request, response, address }: Forwarding, use: TargetUse): void {
  const headers = responseHeaders(answer.rawHeaders, {
    statusCode: answer.statusCode ?? 502,
    connection: answer.headers.connection,
    target: use.target,
    prefix: AGENTS_PREFIX + address.slug,
  })
  if (answer.headers.date !== undefined) response.sendDate = false
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', headers)
  // The headers of a stream go out before its first event.
  response.flushHeaders()
  answer.pipe(response)
  answer.once('close', () => {
    if (!answer.complete) response.destroy()
  })
  // A broken answer closes as well; there, it is told from a whole one.
  answer.on('error', () => undefined)
  // An early answer: what is left of the client's body is not wanted.
  response.once('finish', () => request.unpipe().resume())
}

/** Nothing of the request can have been acted upon, or acting twice does no harm; and the body is still whole. */
function mayRepeat(request: IncomingMessage, error: NodeJS.ErrnoException): boolean {
  if (request.readableDidRead) return false
  if (error.code === 'ECONNREFUSED') return true
  return IDEMPOTENT.has(request.method ?? '') && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
}

function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
}

function inboundOf(request: IncomingMessage): Inbound {
  return {
    rawHeaders: request.rawHeaders,
    headers: request.headers,
    remoteAddress: request.socket.remoteAddress,
    encrypted: (request.socket as Partial<TLSSocket>).encrypted === true,
  }
}
