import { Agent, request } from 'node:http'

/** Milliseconds that a kind of request took. */
export interface Latency {
  readonly requests: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

interface PacedRequest {
  readonly method: string
  readonly path: string
  readonly everyMs: number
  readonly body?: () => string
}

/**
 * Sends a request of each kind again and again, at its own pace, until `until` is settled. A request begins when it is due, also while
 * earlier ones wait: a stall shows in all that fall into it.
 * @throws {Error} at the first answer that is no success.
 */
export async function measureLatency(
  { url, apiKey }: { url: string; apiKey: string },
  kinds: Readonly<Record<string, PacedRequest>>,
  until: Promise<unknown>,
): Promise<Record<string, Latency>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  let over = false
  void until.finally(() => (over = true)).catch(() => undefined)
  const pace = async ({ method, path, everyMs, body }: PacedRequest) => {
    const times: number[] = []
    const sent: Promise<void>[] = []
    for (let due = performance.now(); !over; due += everyMs) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
      sent.push(
        send({ agent, url: `${url}${path}`, method, apiKey, body: body?.() }).then(
          () => void times.push(performance.now() - due),
        ),
      )
    }
    await Promise.all(sent)
    times.sort((a, b) => a - b)
    const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
    return { requests: times.length, p50: quantile(0.5), p99: quantile(0.99), max: times.at(-1) ?? 0 }
  }
  const measured = await Promise.all(Object.entries(kinds).map(async ([name, kind]) => [name, await pace(kind)] as const))
  await until
  agent.destroy()
  return Object.fromEntries(measured)
}

function send(options: { agent: Agent; url: string; method: string; apiKey: string; body: string | undefined }): Promise<void> {
  const { agent, url, method, apiKey, body } = options
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const sent = request(url, { agent, method, headers }, (response) => {
      response.resume().once('end', () => {
        const status = response.statusCode ?? 0
        if (status >= 200 && status < 300) resolve()
        else reject(new Error(`${method} ${url} was answered with ${status}`))
      })
    })
    sent.once('error', reject)
    sent.end(body)
  })
}
