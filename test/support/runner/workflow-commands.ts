/**
 * The runner's reading of workflow commands in a process's output (actions/runner: ActionCommand.cs), including both forms:
 * `::name key=value::data` at the beginning of a line, and the legacy `##[name key=value]data` anywhere in it.
 */
export type WorkflowCommand = {
  name: string
  properties: Record<string, string>
  data: string
  legacy: boolean
  /** The line as the process wrote it. */
  line: string
}

export const COMMAND_NAMES = [
  'stop-commands',
  'set-env',
  'set-output',
  'save-state',
  'add-mask',
  'add-path',
  'add-matcher',
  'remove-matcher',
  'debug',
  'warning',
  'error',
  'notice',
  'group',
  'endgroup',
  'echo',
] as const

/** The command in `line`, or null. Names outside `registered` (lower case) are no commands: the line is plain output. */
export function parseCommand(line: string, registered: ReadonlySet<string>): WorkflowCommand | null {
  return parseDoubleColon(line, registered) ?? parseLegacy(line, registered)
}

function parseDoubleColon(line: string, registered: ReadonlySet<string>): WorkflowCommand | null {
  const message = trimStart(line)
  if (!message.startsWith('::')) return null
  const end = message.indexOf('::', 2)
  if (end < 0) return null
  const info = message.slice(2, end)
  const { name, rest } = splitName(info)
  if (!registered.has(name.toLowerCase())) return null
  const properties = parseProperties({ text: rest.trim(), separator: ',', unescape: unescapeProperty })
  return { name: name.toLowerCase(), properties, data: unescapeData(message.slice(end + 2)), legacy: false, line }
}

function parseLegacy(line: string, registered: ReadonlySet<string>): WorkflowCommand | null {
  const start = line.indexOf('##[')
  if (start < 0) return null
  const end = line.indexOf(']', start)
  if (end < 0) return null
  const { name, rest } = splitName(line.slice(start + 3, end))
  if (!registered.has(name.toLowerCase())) return null
  const properties = parseProperties({ text: rest, separator: ';', unescape: unescapeLegacy })
  return { name: name.toLowerCase(), properties, data: unescapeLegacy(line.slice(end + 1)), legacy: true, line }
}

/** .NET's idea of white space: it has NEL, and it has not the byte-order mark. */
function trimStart(text: string): string {
  return text.replace(/^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/, '')
}

function splitName(info: string): { name: string; rest: string } {
  const space = info.indexOf(' ')
  return space < 0 ? { name: info, rest: '' } : { name: info.slice(0, space), rest: info.slice(space + 1) }
}

type PropertyText = { text: string; separator: string; unescape: (text: string) => string }

/** Keys compare without regard to case; the first spelling stays, the last value wins. */
function parseProperties({ text, separator, unescape }: PropertyText): Record<string, string> {
  const properties: Record<string, string> = {}
  for (const property of text.split(separator)) {
    const equals = property.indexOf('=')
    if (equals <= 0 || equals === property.length - 1) continue
    const key = property.slice(0, equals)
    const known = Object.keys(properties).find((name) => name.toLowerCase() === key.toLowerCase())
    properties[known ?? key] = unescape(property.slice(equals + 1))
  }
  return properties
}

// The order is the runner's: `%25` last, so that `%250A` becomes `%0A` and not a line break.
function unescapeData(text: string): string {
  return text.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%')
}

function unescapeProperty(text: string): string {
  return unescapeWith(text, [['%0D', '\r'], ['%0A', '\n'], ['%3A', ':'], ['%2C', ','], ['%25', '%']])
}

function unescapeLegacy(text: string): string {
  return unescapeWith(text, [['%3B', ';'], ['%0D', '\r'], ['%0A', '\n'], ['%5D', ']'], ['%25', '%']])
}

function unescapeWith(text: string, table: readonly (readonly [escaped: string, plain: string])[]): string {
  return table.reduce((result, [escaped, plain]) => result.replaceAll(escaped, plain), text)
}
