import type { AssistantAnswer, RunEvent, RunStreamRequest, StreamMode } from '../contract/run-stream.ts'
import { assistantsAnswerSchema } from '../contract/run-stream.ts'
import type { Transport } from './transport.ts'

export type StreamRunOptions = {
  /** A graph's name, or an assistant's UUID. */
  assistantId: string
  input: Readonly<Record<string, unknown>>
  streamMode: StreamMode | readonly StreamMode[]
  /** Cancellation and the deadline of the whole run. */
  signal: AbortSignal
}

/** One deployed agent server (specification 4.2; hosted service). Each operation may throw a `RequestFailure`. */
export type AgentServer = {
  readonly url: string
  /**
   * Runs an assistant without a thread and yields what it streams. Sent once; asks that the run be cancelled when the reader
   * leaves. That it ends says that the stream is whole, not that the run went well: look for `error` events.
   */
  streamRun(options: StreamRunOptions): AsyncGenerator<RunEvent, void, undefined>
  /** The assistants of the server, the oldest first: a graph's own come before those that people have added. */
  searchAssistants(signal: AbortSignal): Promise<AssistantAnswer[]>
  /** Passes when the server answers its health check. */
  ok(signal: AbortSignal): Promise<void>
}

/** The transport's address is that of the deployment, and its headers hold the API key. */
export function createAgentServer(transport: Transport): AgentServer {
  return {
    url: transport.baseUrl,
    streamRun: async function* ({ assistantId, input, streamMode, signal }) {
      const body: RunStreamRequest = {
        assistant_id: assistantId,
        input: { ...input },
        stream_mode: typeof streamMode === 'string' ? streamMode : [...streamMode],
        on_disconnect: 'cancel',
      }
      for await (const { event, data } of transport.stream({ method: 'POST', path: '/runs/stream', body, signal })) {
        yield { event, data: dataOf(data) }
      }
    },
    searchAssistants: async (signal) => {
      const body = { limit: 100, offset: 0, sort_by: 'created_at', sort_order: 'asc' }
      const options = { method: 'POST', path: '/assistants/search', body, signal, idempotent: true } as const
      return (await transport.request({ ...options, schema: assistantsAnswerSchema })).body
    },
    ok: async (signal) => void (await transport.request({ method: 'GET', path: '/ok', signal, emptyAllowed: true })),
  }
}

/** Agents write JSON; an event without data, or with words where JSON should be, is no reason to lose the others. */
function dataOf(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
