import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { proxyUpgrade } from 'httpxy'
import { API_KEY_HEADER } from '../../contract/headers.ts'
import { type AgentProxyOptions, AGENTS_PREFIX, admit } from './admission.ts'
import type { Refusal } from './refusal.ts'

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
  if (request.headers.upgrade?.toLowerCase() !== 'websocket' || request.method !== 'GET') {
    return refuseUpgrade(socket, { status: 501, detail: 'WebSocket is the only protocol that a connection can be upgraded to.' })
  }
  const { slug, path } = admission.address
  let upstream: Duplex | undefined
  const use = options.routes.use(slug, {
    cut: () => {
      upstream?.destroy()
      socket.destroy()
    },
  })
  if (use === null) {
    return refuseUpgrade(socket, { status: 503, detail: `The deployment ${slug} has no agent that runs. Try again shortly.` })
  }
  socket.once('close', () => {
    use.finish()
    upstream?.destroy()
  })
  withoutKey(request)
  request.url = path
  request.headers['x-forwarded-host'] ??= request.headers.host
  request.headers['x-forwarded-prefix'] = AGENTS_PREFIX + slug
  const { host, port, revisionId } = use.target
  try {
    upstream = await proxyUpgrade({ host, port }, request, socket, head, { changeOrigin: true })
    upstream.once('close', () => socket.destroy())
  } catch (error) {
    // The agent's own refusal has been passed on already.
    options.onFault?.({ slug, revisionId, error: error instanceof Error ? error : new Error(String(error)) })
    if (!socket.destroyed) socket.end()
    use.finish()
  }
}

function withoutKey(request: IncomingMessage): void {
  const name = API_KEY_HEADER.toLowerCase()
  const key = request.headers[name]
  const keepsAuthorization = typeof key === 'string' && key !== '' && !request.headers.authorization?.includes(key)
  delete request.headers[name]
  if (!keepsAuthorization) delete request.headers.authorization
}

function refuseUpgrade(socket: Duplex, { status, detail }: Refusal): void {
  if (socket.destroyed || !socket.writable) return
  const body = JSON.stringify({ detail })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
