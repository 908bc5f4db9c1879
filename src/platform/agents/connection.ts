import type { ClientRequest } from 'node:http'

/** How long a connection to an agent, or to its node, may take to be made. Milliseconds. */
const CONNECT_LIMIT_MS = 5000
/** A peer that was silent for so long is asked by the system whether it is there: streams may be silent, but not their machine. */
const KEEP_ALIVE_MS = 10_000

/**
 * Ends a request whose connection is not made in time, and has one noticed whose other end is gone without a word.
 * @returns whether the connection was made: until then nothing of the request has been sent.
 */
export function guardConnection(request: ClientRequest): () => boolean {
  let made = false
  request.once('socket', (socket) => {
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    if (!socket.connecting) {
      made = true
      return
    }
    const late = () => {
      if (!made) request.destroy(new Error(`no connection within ${CONNECT_LIMIT_MS / 1000} s`))
    }
    // After what has arrived meanwhile was heard: it may be this process that was late.
    const limit = setTimeout(() => setImmediate(late), CONNECT_LIMIT_MS)
    socket.once('connect', () => {
      made = true
      clearTimeout(limit)
    })
    socket.once('close', () => clearTimeout(limit))
  })
  return () => made
}
