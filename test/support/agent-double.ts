import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody, startServer } from './http-server.ts'

/** What the double does with one run. */
export type RunStep = (response: ServerResponse, request: IncomingMessage) => void

export type AgentDouble = {
  url: string
  /** Every request that arrived. `gone` is set when its connection has closed. */
  requests: { method: string; path: string; headers: Record<string, string>; body: unknown; gone: boolean }[]
  /** The bodies of the runs that were asked for. */
  runs: () => unknown[]
  down: () => Promise<void>
  up: () => Promise<void>
  stop: () => Promise<void>
}

/** One Server-Sent Event. */
export function sse(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

export const METADATA = sse('metadata', { run_id: '01a1fb47-cb82-708f-ac84-95905745a464', attempt: 1 })

/** An event of the mode `updates`, in which the agent says this. */
export function says(text: string): string {
  return sse('updates', { echo: { messages: [{ type: 'ai', content: text, id: 'run-1' }] } })
}

export const steps = {
  /** A stream of these events that ends well. */
  stream:
    (...events: string[]): RunStep =>
    (response) =>
      void head(response).end(events.join('')),
  /** A stream that breaks off after these events. */
  breakOff:
    (...events: string[]): RunStep =>
    (response) => {
      head(response).write(events.join(''), () => setTimeout(() => response.destroy(), 50))
    },
  /** A stream that stays silent after these events. */
  stall:
    (...events: string[]): RunStep =>
    (response) => {
      head(response).flushHeaders()
      if (events.length > 0) response.write(events.join(''))
    },
  answer:
    (status: number, body: unknown, headers: Record<string, string> = {}): RunStep =>
    (response) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      response
        .writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json', ...headers })
        .end(text)
    },
  reset: (): RunStep => (_response, request) => void request.socket.resetAndDestroy(),
}

/** An agent server that goes through a script, one step a run; the last one is done again and again. */
export async function startAgentDouble(options: { runs: readonly RunStep[]; graphs?: readonly string[] }): Promise<AgentDouble> {
  const requests: AgentDouble['requests'] = []
  const runs = () => requests.filter(({ path }) => path.endsWith('/runs/stream')).map(({ body }) => body)

  const server = await startServer((request, response) => void handle(request, response).catch(() => response.destroy()))

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = (await readBody(request)).toString()
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const path = request.url ?? '/'
    const recorded = {
      method: request.method ?? 'GET',
      path,
      headers,
      body: text === '' ? null : (JSON.parse(text) as unknown),
      gone: false,
    }
    requests.push(recorded)
    request.socket.once('close', () => {
      recorded.gone = true
    })
    if (path.endsWith('/assistants/search')) {
      const assistants = (options.graphs ?? []).map((graph, index) => ({
        assistant_id: `id-${index}`,
        graph_id: graph,
        name: graph,
      }))
      steps.answer(200, assistants)(response, request)
    } else if (path.endsWith('/runs/stream')) {
      options.runs[Math.min(runs().length, options.runs.length) - 1]?.(response, request)
    } else steps.answer(404, { detail: 'Not Found' })(response, request)
  }

  return { url: `${server.url}/agents/echo`, requests, runs, down: server.down, up: server.up, stop: server.stop }
}

function head(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' })
}
