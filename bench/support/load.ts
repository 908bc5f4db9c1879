import { Agent, request } from 'node:http'

/** One kind of request: what the next one is. */
export interface Load {
  readonly name: string
  readonly next: () => { method: string; path: string; body?: string; headers?: Record<string, string> }
}

/** What was seen of one kind of request. Milliseconds. */
export interface Measured {
  readonly requests: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/**
 * Keeps `connections` busy for `seconds`, each with one request after the other over a connection that stays open.
 * @throws {Error} at the first answer that is not 200: a fast refusal is no performance.
 */
export async function measure({
  url,
  load,
  connections,
  seconds,
  headers,
}: {
  url: string
  load: Load
  connections: number
  seconds: number
  headers: Record<string, string>
}): Promise<Measured> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const times: number[] = []
  const begin = performance.now()
  const end = begin + seconds * 1000
  const worker = async () => {
    while (performance.now() < end) {
      const start = performance.now()
      const next = load.next()
      await once({ url, agent, ...next, headers: { ...headers, ...next.headers } })
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: connections }, worker))
  const took = (performance.now() - begin) / 1000
  agent.destroy()
  times.sort((a, b) => a - b)
  const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0
  return { requests: times.length, perSecond: times.length / took, p50: quantile(0.5), p99: quantile(0.99), max: times.at(-1) ?? 0 }
}

function once(options: {
  url: string
  agent: Agent
  headers: Record<string, string>
  method: string
  path: string
  body?: string
}): Promise<void> {
  const { url, agent, method, path, body } = options
  const headers: Record<string, string> = { ...options.headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) }
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { agent, method, headers }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        if (response.statusCode !== 200) text += chunk.toString()
      })
      response.on('end', () => {
        if (response.statusCode === 200) resolve()
        else reject(new Error(`${method} ${path} was answered with ${response.statusCode}: ${text.slice(0, 300)}`))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
