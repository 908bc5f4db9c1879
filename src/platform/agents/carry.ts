import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { guardConnection } from './connection.ts'
import type { Exchange } from './drain.ts'
import { refuse, type Refusal } from './refusal.ts'
import type { TargetUse } from './routes.ts'

/** Why a request has not been acted upon, so that it may be sent once more: no connection was made, it broke, or it came too late. */
export type Miss = 'refused' | 'reset' | 'gone'

/** One request on its way to a target, and the answer back. */
export interface Passage {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Takes the target of this attempt; null: there is none. */
  readonly take: (exchange: Exchange) => TargetUse | null
  readonly connect: (use: TargetUse) => ClientRequest
  /** True when the target is asked first whether it wants the body (`Expect: 100-continue`). */
  readonly asksFirst?: (use: TargetUse) => boolean
  /** The headers that the client gets. */
  readonly answerHeaders: (answer: IncomingMessage, use: TargetUse) => string[]
  /** True for an answer that says that the target is no longer there, and has seen nothing of the request. */
  readonly isGone?: (answer: IncomingMessage, use: TargetUse) => boolean
  /** Whether to try once more after the n-th attempt; may wait, and may bring another target about. */
  readonly mayRepeat: (attempt: number, miss: Miss) => Promise<boolean>
  readonly refusals: { readonly none: Refusal; readonly unreachable: Refusal; readonly broken: Refusal }
  readonly onFault?: (error: Error, use: TargetUse) => void
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** True for a method that does no harm when it is done twice. */
export function isIdempotent(method: string | undefined): boolean {
  return IDEMPOTENT.has(method ?? '')
}

/**
 * Streams a request and its answer through as they come. A client that leaves ends the target's request; a target that dies in the middle of
 * an answer breaks the client's connection, so that half an answer never looks like a whole one.
 */
export function carry(passage: Passage, attempt = 1): void {
  const { request, response } = passage
  const use = passage.take({
    cut: () => {
      upstream.destroy()
      response.destroy()
    },
  })
  if (use === null) {
    refuse(request, response, passage.refusals.none)
    return
  }
  const upstream: ClientRequest = passage.connect(use)
  const wasMade = guardConnection(upstream)
  const leave = () => {
    use.finish()
    if (!response.writableFinished) upstream.destroy()
  }
  let missed = false
  const miss = (kind: Miss, refusal: Refusal) => {
    missed = true
    response.off('close', leave)
    use.finish()
    upstream.destroy()
    const again =
      request.readableDidRead || (kind === 'reset' && !isIdempotent(request.method))
        ? Promise.resolve(false)
        : passage.mayRepeat(attempt, kind)
    void again
      .catch(() => false)
      .then((repeat) => {
        if (response.destroyed) return
        if (repeat) carry(passage, attempt + 1)
        else refuse(request, response, refusal)
      })
  }
  response.once('close', leave)
  upstream.once('response', (answer) => {
    if (passage.isGone?.(answer, use) === true) {
      answer.resume()
      miss('gone', passage.refusals.unreachable)
    } else relay(answer, passage, use)
  })
  upstream.on('error', (error: NodeJS.ErrnoException) => {
    if (missed) return
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    passage.onFault?.(error, use)
    if (!wasMade()) miss('refused', passage.refusals.unreachable)
    else if (error.code === 'ECONNRESET' || error.code === 'EPIPE') miss('reset', passage.refusals.broken)
    else {
      missed = true
      response.off('close', leave)
      use.finish()
      refuse(request, response, passage.refusals.broken)
    }
  })
  send(passage, upstream, passage.asksFirst?.(use) === true)
}

/**
 * Sends the client's body. It starts to flow when the target has accepted the connection, or has said that it wants the body (where it was
 * asked), so that until then it can be sent elsewhere.
 */
function send({ request, response }: Passage, upstream: ClientRequest, asksFirst: boolean): void {
  if (!hasBody(request)) {
    upstream.end()
    return
  }
  const begin = () => {
    // Whoever waits for a word before it sends its body gets it now.
    if (request.headers.expect !== undefined && !response.headersSent) response.writeContinue()
    request.pipe(upstream)
  }
  if (asksFirst) {
    upstream.once('continue', begin)
    return
  }
  upstream.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', begin)
    else begin()
  })
}

function relay(answer: IncomingMessage, { request, response, answerHeaders }: Passage, use: TargetUse): void {
  if (answer.headers.date !== undefined) response.sendDate = false
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', answerHeaders(answer, use))
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

export function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
}
