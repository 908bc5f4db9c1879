import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Fault } from './fault.ts'

const HTML = '<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>'

export interface Strike {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly fault: Fault
  /** Carries the request out. */
  readonly serve: RequestListener
}

/** Lets a request meet a fault. Ends when the answer is on its way, or will never be. */
export async function strike({ request, response, fault, serve }: Strike): Promise<void> {
  if (fault.delay_ms > 0) {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    await wait(fault.delay_ms, undefined, { signal: gone.signal }).catch(() => undefined)
    if (gone.signal.aborted) return
  }
  const replaced = replacementOf(fault)
  if (fault.broken === 'truncated' || fault.broken === 'stalled') breakOff(response, fault.broken)
  if (replaced === null && fault.broken !== 'reset') {
    serve(request, response)
    return
  }
  if (fault.handled) await carryOut({ request, response, serve })
  if (response.destroyed) return
  if (fault.broken === 'reset') {
    request.socket.resetAndDestroy()
    return
  }
  if (replaced === null) return
  response.writeHead(replaced.status, replaced.headers)
  response.end(replaced.body)
}

/** The answer that stands in for the platform's own; null: it is the platform's own. */
function replacementOf(fault: Fault): { status: number; headers: Record<string, string>; body: string } | null {
  const status = fault.status ?? 200
  if (fault.broken === 'html') return { status, headers: { 'Content-Type': 'text/html', ...fault.headers }, body: HTML }
  if (fault.status === null || fault.status === undefined) return null
  const hasBody = status !== 204 && status !== 304
  const body = fault.body === undefined ? { detail: 'This fault was asked for.' } : fault.body
  return { status, headers: { 'Content-Type': 'application/json', ...fault.headers }, body: hasBody ? JSON.stringify(body) : '' }
}

/** Serves the request with an answer that goes nowhere. */
function carryOut({ request, response, serve }: Pick<Strike, 'request' | 'response' | 'serve'>): Promise<void> {
  const own = { writeHead: response.writeHead, write: response.write, end: response.end, flushHeaders: response.flushHeaders }
  return new Promise((resolve) => {
    const done = () => {
      Object.assign(response, own)
      for (const name of response.getHeaderNames()) response.removeHeader(name)
      resolve()
    }
    Object.assign(response, {
      writeHead: () => response,
      flushHeaders: () => {},
      write: swallow,
      end: (...args: unknown[]) => {
        swallow(...args)
        done()
        return response
      },
    })
    response.once('close', () => resolve())
    serve(request, response)
  })
}

/** Lets the first half of the first piece of the body through; then the connection ends, or stays silent. */
function breakOff(response: ServerResponse, how: 'truncated' | 'stalled'): void {
  const write = response.write.bind(response) as (chunk: Buffer, told: () => void) => boolean
  let broken = false
  const end = () => {
    if (how === 'truncated') response.socket?.destroy()
  }
  const cut = (chunk: unknown): void => {
    if (broken) return
    broken = true
    const bytes = typeof chunk === 'string' || chunk instanceof Uint8Array ? Buffer.from(chunk as string) : Buffer.alloc(0)
    const half = bytes.subarray(0, Math.floor(bytes.length / 2))
    if (half.length > 0) write(half, end)
    else {
      response.flushHeaders()
      setImmediate(end)
    }
  }
  Object.assign(response, {
    write: (chunk: unknown, ...rest: unknown[]) => {
      if (!isEmpty(chunk)) cut(chunk)
      return swallow(...rest)
    },
    end: (chunk: unknown) => {
      cut(typeof chunk === 'function' ? undefined : chunk)
      return response
    },
  })
}

/** What `write` does for its caller when nothing is written. */
function swallow(...args: unknown[]): true {
  const told = args.find((arg) => typeof arg === 'function') as (() => void) | undefined
  if (told !== undefined) setImmediate(told)
  return true
}

function isEmpty(chunk: unknown): boolean {
  return (typeof chunk === 'string' || chunk instanceof Uint8Array) && chunk.length === 0
}
