import { plainLine } from './plain.ts'

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Untrusted text inside HTML, in an element or an attribute. */
export function html(text: string): string {
  return plainLine(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}

// What can begin something in Markdown: any sign but a few harmless ones; and of these an underscore at the edge of a word, the
// colon of an address or of an emoji, the dot of "www.", and what would make the text a heading or a list.
const MEANINGFUL =
  /[^\p{L}\p{N} ,;.\-/:()'?=%+_]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|:(?=\S)|(?<=www)\.|^[-+=]|(?<=^\d{1,9})[.)]/giu

/**
 * Untrusted text inside a line of Markdown: every character that could mean something there is written as an entity, so that no
 * link, table cell, code span, mention, issue reference or tag comes out of it.
 */
export function inline(text: string): string {
  return plainLine(text)
    .trimStart()
    .replace(MEANINGFUL, (character) => `&#${character.codePointAt(0)};`)
}

/** Like `inline`, but what stands between backticks is code: for sentences of ours, which may quote anything. */
export function prose(text: string): string {
  return inline(text).replace(/&#96;(.+?)&#96;/g, '<code>$1</code>')
}

/** A commit as tables show it; any other text as it is. */
export function shortCommit(text: string): string {
  return /^[0-9a-f]{40,64}$/i.test(text) ? text.slice(0, 12) : text
}

/** Untrusted text as code. An HTML element, because a code span ends at the text's own backticks. */
export function code(text: string): string {
  return `<code>${inline(text)}</code>`
}

/** A link, when the address is http or https; the bare label otherwise. `label` is Markdown already. */
export function link(label: string, address: string): string {
  if (!URL.canParse(address)) return label
  const url = new URL(address)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return label
  return `<a href="${html(url.href)}">${label}</a>`
}

/** Untrusted lines as one preformatted block. */
export function block(lines: readonly string[]): string {
  // A blank line would end the HTML block and give the rest to Markdown.
  return `<pre>${lines.map((line) => html(line) || ' ').join('\n')}</pre>`
}

/** A table of two columns; both are Markdown already. */
export function table(rows: readonly (readonly [string, string])[]): string {
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n')
}

/** Text cut to `max` bytes of UTF-8, with a sentence where it was cut. */
export function clipBytes(text: string, max: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= max) return text
  const note = '\n\nThe rest was left out: the summary was too long.\n'
  const end = wholeCharacters(bytes, max - Buffer.byteLength(note))
  return bytes.subarray(0, end).toString('utf8') + note
}

function wholeCharacters(bytes: Buffer, length: number): number {
  let end = Math.max(0, length)
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}
