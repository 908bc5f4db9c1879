import { connect } from 'node:net'

export interface FloodRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export interface FloodResult {
  readonly admitted: number
  readonly refused: number
  /** Ids of the rows that the refusals named. */
  readonly rules: readonly string[]
  /** `Retry-After` of the last refusal, in seconds. */
  readonly retryAfter: number
}

/** Sends one request `count` times, without a body, over a few connections with many under way on each. */
export async function flood({ ports, request, count, connections = 3 }: {
  /** The connections go to these servers in turn. */
  ports: readonly number[]
  request: FloodRequest
  count: number
  connections?: number
}): Promise<FloodResult> {
  const shares = Array.from({ length: connections }, (_, index) => Math.floor((count + connections - 1 - index) / connections))
  const texts = await Promise.all(shares.map((share, index) => pipeline(ports[index % ports.length] ?? 0, request, share)))
  const text = texts.join('')
  const refused = [...text.matchAll(/HTTP\/1\.1 429 /g)].length
  return {
    admitted: [...text.matchAll(/HTTP\/1\.1 \d{3} /g)].length - refused,
    refused,
    rules: [...new Set([...text.matchAll(/"rule":\{"id":"([^"]+)"/g)].map(([, id = '']) => id))],
    retryAfter: Number([...text.matchAll(/^retry-after: (\d+)/gim)].at(-1)?.[1] ?? 0),
  }
}

/** All answers of one connection, as they came. */
function pipeline(port: number, { method, path, headers }: FloodRequest, count: number): Promise<string> {
  if (count === 0) return Promise.resolve('')
  const all = { Host: '127.0.0.1', 'Content-Length': '0', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  const message = (last: boolean) => `${method} ${path} HTTP/1.1\r\n${lines.join('')}${last ? 'Connection: close\r\n' : ''}\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    socket.write(message(false).repeat(count - 1) + message(true))
  })
}
