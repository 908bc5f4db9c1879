import type { AgentServer } from '../../client/agent-server.ts'
import type { Effects } from '../../client/effects.ts'
import { RequestFailure } from '../../client/failure.ts'
import { isCertificateProblem, isPlainHttp } from '../../client/network-problem.ts'
import { assembleText } from '../../client/streamed-text.ts'
import {
  isAgentEvent,
  isEndEvent,
  isErrorEvent,
  runErrorText,
  splitEventName,
  type StreamMode,
} from '../../contract/run-stream.ts'

/** One run, as far as it came. */
export type Attempt = {
  /** How many events of each name came, without the subgraph's, in the order in which the names were first seen. */
  events: ReadonlyMap<string, number>
  /** How many of them came from the agent's own work. */
  agentEvents: number
  /** From the request to the agent's first event, and to the end of the stream. */
  firstEventMs: number | undefined
  endMs: number | undefined
  text: string
  /** The words of an `error` event. */
  error: string | undefined
  /** Why the stream did not come to its end. */
  failure: RequestFailure | undefined
}

/** A run of which nothing has come yet. */
export const notBegun = (): Attempt => ({
  events: new Map(),
  agentEvents: 0,
  firstEventMs: undefined,
  endMs: undefined,
  text: '',
  error: undefined,
  failure: undefined,
})

/** Names beyond these bounds are counted together: whoever writes them can make up any number. */
const NAMES_MAX = 20
const NAME_MAX = 60

/** Streams one run to its end, to its first `error` event, or to whatever breaks it off. Throws no `RequestFailure`. */
export async function attemptRun({
  agent,
  assistant,
  input,
  streamMode,
  signal,
  effects,
}: {
  agent: AgentServer
  assistant: string
  input: Readonly<Record<string, unknown>>
  streamMode: StreamMode
  signal: AbortSignal
  effects: Pick<Effects, 'now'>
}): Promise<Attempt> {
  const start = effects.now()
  const events = new Map<string, number>()
  const text = assembleText()
  const attempt: Attempt = { ...notBegun(), events }
  try {
    for await (const event of agent.streamRun({ assistantId: assistant, input, streamMode, signal })) {
      count(events, event.event)
      if (isErrorEvent(event.event)) {
        attempt.error = runErrorText(event.data)
        break
      }
      if (isAgentEvent(event.event)) {
        attempt.firstEventMs ??= effects.now() - start
        attempt.agentEvents += 1
        text.add(event)
      }
      // Nothing comes after it; some servers keep the connection.
      if (isEndEvent(event.event)) break
    }
    attempt.endMs = effects.now() - start
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    attempt.failure = error
  }
  return { ...attempt, text: text.text() }
}

/** Statuses of a server, or of what stands before it, that is not there yet. */
const WARMING_UP = new Set([404, 408, 425, 429, 502, 503, 504])

/**
 * True when a new revision may need a moment more: nothing has answered for the agent yet. An answer of the agent, a wrong one
 * above all, is never asked for twice.
 */
export function isWarmingUp({ events, failure }: Pick<Attempt, 'events' | 'failure'>): boolean {
  if (failure === undefined || events.size > 0) return false
  if (failure.kind === 'http') return WARMING_UP.has(failure.status ?? 0)
  if (failure.kind === 'network') return !isCertificateProblem(failure.code) && !isPlainHttp(failure.detail)
  return failure.kind === 'protocol' && failure.code === 'truncated'
}

/** True for the answer of an agent server that is there, and does not have the assistant. */
export function isUnknownAssistant({ status, detail, excerpt }: RequestFailure): boolean {
  return status === 404 && /\b(assistant|graph)\b/i.test(`${detail ?? ''} ${excerpt ?? ''}`)
}

function count(events: Map<string, number>, name: string): void {
  const { base } = splitEventName(name)
  const fits = base.length <= NAME_MAX && (events.has(base) || events.size < NAMES_MAX)
  const key = fits ? base : 'others'
  events.set(key, (events.get(key) ?? 0) + 1)
}
