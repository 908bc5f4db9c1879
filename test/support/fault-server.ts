import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { readBody, startServer } from './http-server.ts'

/** What can go wrong with one request on its way to the upstream, or with the answer on its way back. */
export type Fault =
  /** An answer of our own; the upstream never hears of the request. A string body goes out as it is, anything else as JSON. */
  | { kind: 'answer'; status: number; body?: unknown; headers?: Record<string, string> }
  /** The upstream's answer, with its body replaced. */
  | { kind: 'body'; body: unknown; contentType?: string }
  /** The upstream's answer, `ms` later. */
  | { kind: 'delay'; ms: number }
  /** The upstream's headers and the first `bytes` of its body; then silence, or the end of the connection. */
  | { kind: 'stall' | 'truncate'; bytes: number }
  /** Silence before the first byte; the upstream never hears of the request. */
  | { kind: 'silence' }
  /** The connection is broken before the request reaches the upstream, or after it was carried out. */
  | { kind: 'reset'; when: 'before' | 'after' }

type Answer = { status: number; headers: Record<string, string>; body: Buffer }

export const HTML_PAGE = '<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Sign in</h1></body></html>'

export const faults = {
  status: (status: number, body: unknown = { detail: `status ${status}` }): Fault => ({ kind: 'answer', status, body }),
  /** `retryAfter`: seconds as a number, or a date; absent: no header. */
  rateLimited: (retryAfter?: number | Date): Fault => {
    const value = retryAfter instanceof Date ? retryAfter.toUTCString() : `${retryAfter}`
    const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': value }
    return { kind: 'answer', status: 429, body: { detail: 'Too Many Requests' }, headers }
  },
  html: (status = 200): Fault => ({ kind: 'answer', status, body: HTML_PAGE, headers: { 'content-type': 'text/html' } }),
  empty: (status = 200): Fault => ({ kind: 'answer', status, body: '' }),
  json: (body: unknown): Fault => ({ kind: 'answer', status: 200, body }),
  oversized: (bytes: number): Fault => ({ kind: 'answer', status: 200, body: `{"padding":"${'x'.repeat(bytes)}"}` }),
  redirect: (location: string, status = 307): Fault => ({ kind: 'answer', status, body: '', headers: { location } }),
}

export type FaultRule = { method?: string; path?: RegExp; times?: number }

export type FaultServer = {
  url: string
  /** Every request that arrived, with the fault that it met (null: passed on as it was). */
  requests: { method: string; path: string; headers: Record<string, string>; fault: Fault | null; at: number }[]
  /** Adds a fault for the next `times` (default 1) requests that match; faults of one pattern queue up in order. */
  on: (rule: FaultRule, fault: Fault) => void
  /** Forgets all faults that are left. */
  clear: () => void
  /** Number of faults that have struck. */
  struck: () => number
  down: () => Promise<void>
  up: () => Promise<void>
  stop: () => Promise<void>
}

/** A proxy in front of `upstream` (an http address, with or without a path) that passes everything on until a fault matches. */
export async function startFaultServer(upstream: string): Promise<FaultServer> {
  const target = new URL(upstream)
  const queue: { rule: FaultRule; fault: Fault; left: number }[] = []
  const requests: FaultServer['requests'] = []
  let struck = 0

  const server = await startServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '/'
    const fault = nextFault(request.method ?? 'GET', path)
    const received = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    requests.push({ method: request.method ?? 'GET', path, headers: received, fault, at: Date.now() })
    const body = await readBody(request)
    if (fault?.kind === 'silence') return
    if (fault?.kind === 'reset' && fault.when === 'before') return void request.socket.resetAndDestroy()
    if (fault?.kind === 'answer') {
      const answered = { 'content-type': 'application/json', ...fault.headers }
      return send({ response, status: fault.status, headers: answered, body: encode(fault.body) })
    }
    const answer = await pass(request, path, body)
    if (fault?.kind === 'reset') return void request.socket.resetAndDestroy()
    if (fault?.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms))
    if (fault?.kind === 'body') {
      const headers = { ...answer.headers, 'content-type': fault.contentType ?? 'application/json' }
      return send({ response, status: answer.status, headers, body: encode(fault.body) })
    }
    if (fault?.kind === 'stall' || fault?.kind === 'truncate') {
      response.writeHead(answer.status, { ...answer.headers, 'content-length': answer.body.length })
      response.flushHeaders()
      const start = answer.body.subarray(0, Math.min(fault.bytes, answer.body.length - 1))
      if (start.length > 0) await new Promise<void>((resolve) => response.write(start, () => resolve()))
      if (fault.kind === 'truncate') response.socket?.end()
      return
    }
    send({ response, ...answer })
  }

  function nextFault(method: string, path: string): Fault | null {
    const matches = (rule: FaultRule) => (rule.method ?? method) === method && (rule.path?.test(path) ?? true)
    const entry = queue.find(({ rule, left }) => left > 0 && matches(rule))
    if (entry === undefined) return null
    entry.left -= 1
    struck += 1
    return entry.fault
  }

  function pass(request: IncomingMessage, path: string, body: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = request.headers
      const onward = forward(new URL(`${target.pathname.replace(/\/$/, '')}${path}`, target), {
        method: request.method,
        headers: { ...headers, ...(body.length > 0 ? { 'content-length': body.length } : {}) },
        agent: false,
      }, (answer) => {
        const { statusCode: status = 502 } = answer
        readBody(answer).then((received) => resolve({ status, headers: plain(answer), body: received }), reject)
      })
      onward.once('error', reject)
      onward.end(body)
    })
  }

  return {
    url: server.url,
    requests,
    on: (rule, fault) => void queue.push({ rule, fault, left: rule.times ?? 1 }),
    clear: () => void queue.splice(0),
    struck: () => struck,
    down: server.down,
    up: server.up,
    stop: server.stop,
  }
}

function plain(answer: IncomingMessage): Record<string, string> {
  const hop = new Set(['connection', 'keep-alive', 'transfer-encoding'])
  const kept = Object.entries(answer.headers).filter(([name]) => !hop.has(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]))
}

function encode(body: unknown): Buffer {
  return Buffer.from(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))
}

function send({ response, status, headers, body }: Answer & { response: ServerResponse }): void {
  response.writeHead(status, { ...headers, 'content-length': body.length })
  response.end(body)
}
