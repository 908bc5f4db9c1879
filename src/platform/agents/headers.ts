import type { IncomingHttpHeaders } from 'node:http'
import { API_KEY_HEADER } from '../../contract/headers.ts'
import { NODE_HEADER } from '../nodes/signature.ts'

/** Headers of one connection, not of the message (RFC 9110 section 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Set by the proxy itself, or settled with the client already (`Expect`: Node has answered 100). */
const REPLACED = new Set([
  'host',
  'expect',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-prefix',
  NODE_HEADER,
])

/** Where the client's request came in. */
export interface Inbound {
  readonly rawHeaders: readonly string[]
  readonly headers: IncomingHttpHeaders
  readonly remoteAddress: string | undefined
  readonly encrypted: boolean
}

/**
 * The headers that the agent gets, as a flat list of names and values: the client's own, in their order, without those of the
 * connection and without the platform's key, which is nothing that a deployment's code should ever hold. `Authorization` passes
 * when `X-Api-Key` carried the key, so that an agent may have an authorisation of its own.
 */
export function requestHeaders(inbound: Inbound, target: { host: string; port: number }, prefix: string): string[] {
  const dropped = connectionHeaders(inbound.headers.connection)
  const key = inbound.headers[API_KEY_HEADER.toLowerCase()]
  const keepsAuthorization = typeof key === 'string' && key !== '' && !inbound.headers.authorization?.includes(key)
  const kept: string[] = []
  for (const [name, value] of pairs(inbound.rawHeaders)) {
    const lower = name.toLowerCase()
    if (dropped.has(lower) || REPLACED.has(lower) || lower === API_KEY_HEADER.toLowerCase()) continue
    if (lower === 'authorization' && !keepsAuthorization) continue
    kept.push(name, value)
  }
  const earlier = inbound.headers['x-forwarded-for']
  const host = inbound.headers['x-forwarded-host'] ?? inbound.headers.host
  kept.push('Host', `${target.host}:${target.port}`)
  kept.push('X-Forwarded-For', [earlier, inbound.remoteAddress].flat().filter(Boolean).join(', '))
  if (host !== undefined) kept.push('X-Forwarded-Host', String(host))
  kept.push('X-Forwarded-Proto', String(inbound.headers['x-forwarded-proto'] ?? (inbound.encrypted ? 'https' : 'http')))
  kept.push('X-Forwarded-Prefix', prefix)
  // A body without a length: it stays chunked.
  if (inbound.headers['transfer-encoding'] !== undefined) kept.push('Transfer-Encoding', 'chunked')
  return kept
}

/**
 * The headers that the client gets. A redirect stays under the deployment's address. `Content-Location`, and `Location` outside of
 * a redirect, stay as the agent wrote them: the LangGraph SDK reads run ids from the one and joins the other to the
 * deployment's address itself. Cookies are bound to the deployment's address: deployments share one host.
 */
export function responseHeaders(
  rawHeaders: readonly string[],
  context: { statusCode: number; connection: string | undefined; target: { host: string; port: number }; prefix: string },
): string[] {
  const dropped = connectionHeaders(context.connection)
  const kept: string[] = []
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase()
    if (dropped.has(lower)) continue
    if (lower === 'location' && context.statusCode >= 300 && context.statusCode < 400) {
      kept.push(name, underPrefix(value, context.target, context.prefix))
    } else if (lower === 'set-cookie') {
      kept.push(
        name,
        value.replace(/(;\s*path=)([^;]*)/i, (_, start: string, path: string) => start + cookiePath(path, context.prefix)),
      )
    } else {
      kept.push(name, value)
    }
  }
  return kept
}

/**
 * Headers on their way between two nodes: all as they are, without those of the connection, `Expect` (answered between the two), and
 * without the one named.
 */
export function forwardedHeaders(rawHeaders: readonly string[], headers: IncomingHttpHeaders, without: string): string[] {
  const dropped = connectionHeaders(headers.connection)
  const kept: string[] = []
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase()
    if (!dropped.has(lower) && lower !== without && lower !== 'expect') kept.push(name, value)
  }
  return kept
}

function connectionHeaders(connection: string | undefined): Set<string> {
  const named = (connection ?? '').split(',').map((token) => token.trim().toLowerCase())
  return new Set([...HOP_BY_HOP, ...named.filter((token) => token !== '')])
}

function underPrefix(location: string, target: { host: string; port: number }, prefix: string): string {
  const origin = `http://${target.host}:${target.port}`
  const path = location === origin || location.startsWith(`${origin}/`) ? location.slice(origin.length) || '/' : location
  if (!path.startsWith('/') || path.startsWith('//')) return location
  return path === prefix || path.startsWith(`${prefix}/`) ? path : prefix + path
}

function cookiePath(path: string, prefix: string): string {
  const trimmed = path.trim()
  if (!trimmed.startsWith('/')) return prefix
  return trimmed === '/' ? prefix : prefix + trimmed
}

function* pairs(rawHeaders: readonly string[]): Generator<[string, string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) yield [rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '']
}
