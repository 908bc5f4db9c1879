import { contentText, readMessage, type Message } from '../contract/message.ts'
import { isRecord } from '../contract/record.ts'
import { splitEventName, type RunEvent } from '../contract/run-stream.ts'

/** So much of a text is kept, in UTF-16 units. */
export const STREAMED_TEXT_MAX = 1_048_576
/** States are searched this deep for messages and texts. */
const DEPTH = 6

/**
 * Puts together what an agent says, from the events of any stream mode (hosted service), as they come:
 *
 * - `messages/partial`, `messages/complete`: the text so far of each message; a later one replaces an earlier one.
 * - `messages` (mode `messages-tuple`) and `events`: pieces, joined as they are, message by message.
 * - `updates`: what each node adds. `values`, `checkpoints`: the last state.
 * - `custom`: texts, joined as they are; of an object its `text`, `delta` or `content`.
 * - `tasks`, `debug`, events of other names: the messages in them.
 *
 * A state without messages counts with the texts in it. What was said to the agent is left out, so that the question cannot pass
 * for the answer. Different messages are joined by line ends. No event makes it throw.
 */
export type TextAssembly = {
  add(event: RunEvent): void
  /** At most `max` UTF-16 units. */
  text(): string
}

export function assembleText({ max = STREAMED_TEXT_MAX }: { max?: number } = {}): TextAssembly {
  const segments = new Map<string, string>()
  /** Keys that the last state of each graph has: what the next state no longer has is gone. */
  const ofState = new Map<string, Set<string>>()
  let anonymous = 0

  const append = (key: string, text: string): void => {
    const before = segments.get(key) ?? ''
    if (before.length < max) segments.set(key, before + text.slice(0, max - before.length))
  }
  /** Texts that replace what is there; those without an id are told apart by `unnamed`. Returns the keys. */
  const put = (said: readonly Said[], unnamed: (index: number) => string): Set<string> => {
    const keys = said.map(({ id }, index) => (id === null ? unnamed(index) : messageKey(id)))
    for (const [index, { text }] of said.entries()) segments.set(keys[index] ?? '', text.slice(0, max))
    return new Set(keys)
  }
  const addNew = (said: readonly Said[]): void => void put(said, () => `anonymous ${anonymous++}`)
  const addState = (graph: string, state: unknown): void => {
    const keys = put(saidIn(state), (index) => `${graph}#${index}`)
    for (const key of ofState.get(graph) ?? []) if (!keys.has(key)) segments.delete(key)
    ofState.set(graph, keys)
  }
  const addPiece = (piece: unknown, graph: string): void => {
    const message = readMessage(piece)
    if (message === null || message.isInput) return
    append(message.id === null ? graph : messageKey(message.id), message.text)
  }
  const addCustom = (data: unknown, graph: string): void => {
    const piece = customText(data)
    if (piece === null) addNew(saidIn(data))
    else append(graph, piece)
  }

  return {
    add: ({ event, data }) => {
      const { base, namespace } = splitEventName(event)
      const graph = `${base} ${namespace}`
      const fields = isRecord(data) ? data : {}
      if (base === 'messages/partial' || base === 'messages/complete') {
        put(outputs(messagesIn(data)), (index) => `messages ${namespace}#${index}`)
      } else if (base === 'messages') addPiece(Array.isArray(data) ? data[0] : data, graph)
      else if (base === 'updates') for (const update of Object.values(fields)) addNew(saidIn(update))
      else if (base === 'values') addState(graph, data)
      else if (base === 'checkpoints') addState(graph, fields['values'])
      else if (base === 'custom') addCustom(data, graph)
      else if (base === 'events') addPiece(isRecord(fields['data']) ? fields['data']['chunk'] : null, graph)
      else if (base === 'tasks') addNew(outputs(messagesIn(fields['result'])))
      else if (base === 'debug') addNew(outputs(messagesIn(isRecord(fields['payload']) ? fields['payload']['result'] : null)))
      else addNew(outputs(messagesIn(data)))
    },
    text: () =>
      [...segments.values()]
        .filter((text) => text !== '')
        .join('\n')
        .slice(0, max),
  }
}

/** The text of a whole stream. */
export function streamedText(events: Iterable<RunEvent>): string {
  const assembly = assembleText()
  for (const event of events) assembly.add(event)
  return assembly.text()
}

type Said = Pick<Message, 'id' | 'text'>

function messageKey(id: string): string {
  return `message ${id}`
}

/** What a state says: its messages, or the texts in it when it has none. */
function saidIn(state: unknown): Said[] {
  const messages = messagesIn(state)
  return messages.length > 0 ? outputs(messages) : textsIn(state).map((text) => ({ id: null, text }))
}

function outputs(messages: readonly Message[]): Message[] {
  return messages.filter(({ isInput }) => !isInput)
}

function messagesIn(value: unknown, depth = 0): Message[] {
  const message = readMessage(value)
  if (message !== null) return [message]
  return depth >= DEPTH ? [] : partsOf(value).flatMap((part) => messagesIn(part, depth + 1))
}

function textsIn(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  return depth >= DEPTH ? [] : partsOf(value).flatMap((part) => textsIn(part, depth + 1))
}

function partsOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : []
}

/** A piece of text that an agent's own writer sent; null when it sent something else. */
function customText(data: unknown): string | null {
  if (typeof data === 'string') return data
  if (!isRecord(data)) return null
  const { text, delta, content } = data
  const piece = [text, delta].find((part) => typeof part === 'string')
  if (typeof piece === 'string') return piece
  return typeof content === 'string' || Array.isArray(content) ? contentText(content) : null
}
