import { type ClientRequest, type IncomingMessage, request as startRequest, STATUS_CODES } from 'node:http'
import { request as startTlsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { type AgentProxyOptions, AGENTS_PREFIX, admit } from './admission.ts'
import { guardConnection } from './connection.ts'
import type { Exchange } from './drain.ts'
import { requestHeaders } from './headers.ts'
import { isGone, wayTo } from './node-door.ts'
import { inboundOf, lookAgain } from './proxy.ts'
import type { Refusal } from './refusal.ts'
import type { TargetUse } from './routes.ts'

/**
 * Handles the `upgrade` event of the server for `/agents/{slug}/…`: WebSockets go through to the agent under the same rules as
 * requests, and count as in flight; any other protocol is refused with 501.
 */
export function createAgentUpgrade(options: AgentProxyOptions): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  return (request, socket, head) => {
    socket.once('error', () => socket.destroy())
    void open({ request, socket, head, options }).catch((error: unknown) => {
      refuseUpgrade(socket, { status: 503, detail: `The connection could not be opened (${String(error)}). Try again shortly.` })
    })
  }
}

interface Opening {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  readonly options: AgentProxyOptions
}

async function open({ request, socket, head, options }: Opening): Promise<void> {
  const admission = await admit(request, options)
  if ('refusal' in admission) return refuseUpgrade(socket, admission.refusal)
  if (!isWebSocket(request)) return refuseUpgrade(socket, NO_OTHER_PROTOCOL)
  const { slug, path } = admission.address
  upgrade({
    socket,
    head,
    take: (exchange) => options.routes.use(slug, exchange),
    connect: ({ target }) => {
      const way = wayTo(target, { method: 'GET', path, signature: options.signature })
      const headers = [...requestHeaders(inboundOf(request), target, AGENTS_PREFIX + slug), ...way.headers, ...UPGRADE_HEADERS]
      const start = way.address.protocol === 'https:' ? startTlsRequest : startRequest
      return start({ ...way.address, headers, agent: false, setHost: false })
    },
    mayRepeat: (attempt, miss) => lookAgain({ attempt, miss, options }),
    none: { status: 503, detail: `The deployment ${slug} has no agent that runs. Try again shortly.` },
    unreachable: { status: 503, detail: `The agent of ${slug} does not accept connections. Try again shortly.` },
    onFault: (error, use) => options.onFault?.({ slug, revisionId: use.target.revisionId, error }),
  })
}

export const NO_OTHER_PROTOCOL: Refusal = {
  status: 501,
  detail: 'WebSocket is the only protocol that a connection can be upgraded to.',
}
export const UPGRADE_HEADERS = ['Connection', 'Upgrade', 'Upgrade', 'websocket'] as const

export function isWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'websocket' && request.method === 'GET'
}

/** One connection on its way to be upgraded. */
export interface UpgradePassage {
  readonly socket: Duplex
  readonly head: Buffer
  readonly take: (exchange: Exchange) => TargetUse | null
  readonly connect: (use: TargetUse) => ClientRequest
  readonly mayRepeat: (attempt: number, miss: 'refused' | 'gone') => Promise<boolean>
  readonly none: Refusal
  readonly unreachable: Refusal
  readonly onFault: (error: Error, use: TargetUse) => void
}

/** Opens the connection to the target, tells the client what it answers, and ties the two together until either ends. */
export function upgrade(passage: UpgradePassage, attempt = 1): void {
  const { socket, head } = passage
  if (socket.destroyed) return
  let upstream: Duplex | undefined
  const use = passage.take({
    cut: () => {
      opening.destroy()
      upstream?.destroy()
      socket.destroy()
    },
  })
  if (use === null) return refuseUpgrade(socket, passage.none)
  const opening = passage.connect(use)
  const wasMade = guardConnection(opening)
  const leave = () => {
    use.finish()
    opening.destroy()
    upstream?.destroy()
  }
  let settled = false
  const miss = (kind: 'refused' | 'gone') => {
    settled = true
    socket.off('close', leave)
    use.finish()
    opening.destroy()
    void passage
      .mayRepeat(attempt, kind)
      .catch(() => false)
      .then((again) => (again ? upgrade(passage, attempt + 1) : refuseUpgrade(socket, passage.unreachable)))
  }
  socket.once('close', leave)
  opening.once('upgrade', (answer, opened, rest) => {
    settled = true
    upstream = opened
    opened.on('error', () => opened.destroy())
    opened.once('close', () => socket.destroy())
    if (socket.destroyed) return void opened.destroy()
    socket.write(headOf(answer))
    if (rest.length > 0) socket.write(rest)
    if (head.length > 0) opened.write(head)
    opened.pipe(socket).pipe(opened)
  })
  opening.once('response', (answer) => {
    if (isGone(answer, use)) {
      answer.resume()
      return miss('gone')
    }
    // The agent's own refusal.
    settled = true
    if (!socket.writable) return void answer.resume()
    socket.write(headOf(answer, { close: true }))
    answer.once('error', () => socket.destroy())
    answer.pipe(socket)
  })
  opening.on('error', (error: Error) => {
    if (settled) return
    passage.onFault(error, use)
    if (!wasMade()) return miss('refused')
    settled = true
    refuseUpgrade(socket, { status: 502, detail: 'The agent closed the connection before it answered. Try again shortly.' })
  })
  opening.end()
}

/** The head of an answer as it came. One that is not an upgrade is sent without chunks, up to the end of the connection. */
function headOf(answer: IncomingMessage, { close = false } = {}): string {
  const lines = [`HTTP/1.1 ${answer.statusCode ?? 502} ${answer.statusMessage ?? ''}`]
  for (let index = 0; index + 1 < answer.rawHeaders.length; index += 2) {
    const name = answer.rawHeaders[index] ?? ''
    if (close && /^(connection|keep-alive|transfer-encoding)$/i.test(name)) continue
    lines.push(`${name}: ${answer.rawHeaders[index + 1] ?? ''}`)
  }
  if (close) lines.push('Connection: close')
  return `${lines.join('\r\n')}\r\n\r\n`
}

export function refuseUpgrade(socket: Duplex, { status, detail, headers = {} }: Refusal): void {
  if (socket.destroyed || !socket.writable) return
  const body = JSON.stringify({ detail })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
