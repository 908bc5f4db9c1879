/** Longest line of untrusted text that is shown anywhere, in UTF-16 units. */
const LINE_MAX = 2000

// CSI and OSC sequences, and the two-character escapes, of ECMA-48.
const ANSI = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]/g
// C0 and C1 but tab, bidirectional overrides, line separators that terminals and browsers break at, and zero-width characters.
const INVISIBLE = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g

/** One line of untrusted text, fit to be shown: no escape sequences, no control characters, bounded. */
export function plainLine(text: string): string {
  return clip(stripLine(text), LINE_MAX)
}

/**
 * Untrusted text as lines that are fit to be shown, of any length. What a carriage return overwrote on a terminal is left out, and
 * secrets are: those that the text carries as they are, and those that come out when its control characters are gone.
 */
export function safeLines(text: string, redact: (text: string) => string): string[] {
  const lines = redact(text).split(/\r\n|\n/)
  return lines.map((line) => redact(stripLine(line.split('\r').findLast((part) => part.trim() !== '') ?? '')))
}

/** Untrusted text as lines that are fit to be shown, each bounded. For text that has been redacted already. */
export function plainLines(text: string): string[] {
  return safeLines(text, (line) => line).map(plainLine)
}

function stripLine(text: string): string {
  return text.replace(ANSI, '').replace(INVISIBLE, ' ').trimEnd()
}

/** The beginning of a text, with a mark where it was cut; never half of a surrogate pair. `max` counts UTF-16 units. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text
  const cut = text.slice(0, Math.max(0, max - 1))
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}
