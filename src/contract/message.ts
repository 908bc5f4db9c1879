import { isRecord } from './record.ts'

/**
 * Messages as agent servers stream them: of either library, plain or in their serialised form, whole or in chunks. Written by
 * hand and total: whatever an agent puts into its state, a reader gets an answer and never an exception.
 */
export type Message = {
  /** Null where the server gives none. */
  id: string | null
  /** The text of its content, without reasoning, tool calls and images. */
  text: string
  /** Said to the agent, not by it: of a person, of the system, or of whoever wrote the prompt. */
  isInput: boolean
}

const INPUT_ROLES = new Set(['human', 'user', 'system', 'developer'])

/** The message that a value is; null when it is none. */
export function readMessage(value: unknown): Message | null {
  const plain = unwrap(value)
  if (plain === null) return null
  const { content, id, type, role } = plain
  const kind = typeof type === 'string' ? type : role
  if (typeof kind !== 'string' || !(typeof content === 'string' || Array.isArray(content))) return null
  return {
    id: typeof id === 'string' && id !== '' ? id : null,
    text: contentText(content),
    isInput: INPUT_ROLES.has(kind.replace(/Message(Chunk)?$/, '').toLowerCase()),
  }
}

/** The text of a message's content: a string, or a list of strings and blocks. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((block) => (typeof block === 'string' ? block : blockText(block))).join('')
}

/** `text` of a text block; the type may be missing in a later piece of the same block. */
function blockText(block: unknown): string {
  if (!isRecord(block)) return ''
  const { type, text } = block
  const isText = type === undefined || type === null || (typeof type === 'string' && /^(\w+_)?text(_delta)?$/.test(type))
  return isText && typeof text === 'string' ? text : ''
}

/** Takes off the wrapping of `{lc, type: 'constructor', id: […, 'AIMessage'], kwargs}` and of `{type, data}`. */
function unwrap(value: unknown): Record<string, unknown> | null {
  if (!isRecord(value)) return null
  if (value['type'] === 'constructor' && isRecord(value['kwargs']) && Array.isArray(value['id'])) {
    return { ...value['kwargs'], type: value['id'].at(-1) }
  }
  if (isRecord(value['data']) && typeof value['type'] === 'string' && value['content'] === undefined) {
    return { ...value['data'], type: value['type'] }
  }
  return value
}
