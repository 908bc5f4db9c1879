import { z } from 'zod'

/** What a run can stream, one or several at a time (specification 4.2; hosted service). */
export const STREAM_MODES = [
  'values',
  'updates',
  'messages',
  'messages-tuple',
  'custom',
  'tasks',
  'checkpoints',
  'events',
  'debug',
] as const
export type StreamMode = (typeof STREAM_MODES)[number]

/** Body of `POST {deployment_url}/runs/stream`: the fields that a client here sends. */
export const runStreamRequestSchema = z.object({
  /** A graph's name, or an assistant's UUID. */
  assistant_id: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
  stream_mode: z.union([z.enum(STREAM_MODES), z.array(z.enum(STREAM_MODES)).min(1)]),
  /** What becomes of the run when its reader leaves. Servers disagree on the default, so it is always sent. */
  on_disconnect: z.enum(['cancel', 'continue']),
})
export type RunStreamRequest = z.infer<typeof runStreamRequestSchema>

/** One event of a stream. `data` is the parsed JSON; null when there was none, the text itself when it was no JSON. */
export type RunEvent = { event: string; data: unknown }

/** `messages/partial|agent:1f0c…` is the event `messages/partial` of a subgraph; the namespace is `''` for the graph itself. */
export function splitEventName(name: string): { base: string; namespace: string } {
  const bar = name.indexOf('|')
  return bar === -1 ? { base: name, namespace: '' } : { base: name.slice(0, bar), namespace: name.slice(bar + 1) }
}

/** Events that say nothing about the agent: the server sends them by itself, whatever the graph does. */
const ENVELOPE = new Set(['metadata', 'messages/metadata', 'heartbeat', 'ping', 'feedback', 'end', 'error'])

/** True for an event that the agent's own work has caused. */
export function isAgentEvent(name: string): boolean {
  return !ENVELOPE.has(splitEventName(name).base)
}

/** An `error` event: HTTP says 200, and the run has failed all the same. */
export function isErrorEvent(name: string): boolean {
  return splitEventName(name).base === 'error'
}

/** The last event of servers that send one; others just close the stream. */
export function isEndEvent(name: string): boolean {
  return splitEventName(name).base === 'end'
}

const runErrorSchema = z.union([
  z.string().transform((message) => ({ error: null, message })),
  z.looseObject({ error: z.string().nullish().catch(null), message: z.string().nullish().catch(null) }),
])

/** The words of an `error` event: `ValueError: no such tool`, or what there is of it. */
export function runErrorText(data: unknown): string {
  const parsed = runErrorSchema.safeParse(data)
  const parts = parsed.success ? [parsed.data.error, parsed.data.message] : []
  const words = parts.filter((part) => part !== null && part !== undefined && part.trim() !== '')
  return words.length === 0 ? 'an error without words' : words.join(': ')
}

/** One assistant, as `POST {deployment_url}/assistants/search` lists it. */
export const assistantAnswerSchema = z.looseObject({
  assistant_id: z.string().min(1),
  graph_id: z.string().min(1),
  name: z
    .string()
    .nullish()
    .transform((name) => name ?? null)
    .catch(null),
})
export type AssistantAnswer = z.output<typeof assistantAnswerSchema>

export const assistantsAnswerSchema = z.array(assistantAnswerSchema)
