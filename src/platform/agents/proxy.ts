import { request as startRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { request as startTlsRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { type AgentAddress, type AgentProxyOptions, AGENTS_PREFIX, admit } from './admission.ts'
import { carry, hasBody, isIdempotent, type Miss } from './carry.ts'
import { type Inbound, requestHeaders, responseHeaders } from './headers.ts'
import { isGone, wayTo } from './node-door.ts'
import { refuse } from './refusal.ts'
import type { TargetUse } from './routes.ts'

/**
 * Handles `/agents/{slug}/…` (specification 4.2, 5.3): the key is checked before the agent sees anything, then both bodies are
 * streamed through as they come.
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

function forward(forwarding: Forwarding): void {
  const { request, response, address, options } = forwarding
  const { slug } = address
  carry({
    request,
    response,
    take: (exchange) => options.routes.use(slug, exchange),
    connect: (use) => connect(forwarding, use),
    // On the way to another node a swap may come in between: what has not been sent can still go elsewhere.
    asksFirst: ({ target }) => target.via !== undefined,
    answerHeaders: (answer, { target }) =>
      responseHeaders(answer.rawHeaders, {
        statusCode: answer.statusCode ?? 502,
        connection: answer.headers.connection,
        target,
        prefix: AGENTS_PREFIX + slug,
      }),
    isGone,
    mayRepeat: (attempt, miss) => lookAgain({ attempt, miss, options }),
    refusals: {
      none: { status: 503, detail: `The deployment ${slug} has no agent that runs. Try again shortly.` },
      unreachable: { status: 503, detail: `The agent of ${slug} does not accept connections. Try again shortly.` },
      broken: { status: 502, detail: `The agent of ${slug} closed the connection before it answered. Try again shortly.` },
    },
    onFault: (error, use) => options.onFault?.({ slug, revisionId: use.target.revisionId, error }),
  })
}

/** Waits before each look for where an agent has gone. Milliseconds. */
const LOOKS_MS = [0, 100, 250, 500, 1000]

/** Whether to send a request once more; one that came too late goes to the agent that serves now, as soon as that is known. */
export async function lookAgain({
  attempt,
  miss,
  options,
}: {
  attempt: number
  miss: Miss
  options: AgentProxyOptions
}): Promise<boolean> {
  if (miss === 'reset') return attempt === 1
  const wait = LOOKS_MS[attempt - 1]
  if (wait === undefined || (miss === 'refused' && attempt > 1)) return false
  if (wait > 0) await sleep(wait)
  await options.refresh?.().catch(() => undefined)
  return true
}

function connect({ request, address, options }: Forwarding, { target, connections }: TargetUse): ClientRequest {
  const method = request.method ?? 'GET'
  const reusable = isIdempotent(method)
  const way = wayTo(target, { method, path: address.path, signature: options.signature })
  const headers = [...requestHeaders(inboundOf(request), target, AGENTS_PREFIX + address.slug), ...way.headers]
  if (target.via !== undefined && hasBody(request)) headers.push('Expect', '100-continue')
  const start = way.address.protocol === 'https:' ? startTlsRequest : startRequest
  return start({
    ...way.address,
    method,
    // What must not be sent twice gets a connection of its own: on a kept one, a reset would not tell whether it was received.
    agent: reusable ? connections : false,
    headers: reusable ? headers : [...headers, 'Connection', 'close'],
    setHost: false,
  })
}

export function inboundOf(request: IncomingMessage): Inbound {
  return {
    rawHeaders: request.rawHeaders,
    headers: request.headers,
    remoteAddress: request.socket.remoteAddress,
    encrypted: (request.socket as Partial<TLSSocket>).encrypted === true,
  }
}
