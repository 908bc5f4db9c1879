import { clip } from './plain.ts'

/** The runner cuts a message at this length, in UTF-16 units. */
export const ANNOTATION_MAX = 4096
const TITLE_MAX = 250

/** A workflow command that makes one annotation. Untrusted text is harmless in it: line ends and separators are encoded. */
export function annotation(
  level: 'error' | 'warning' | 'notice',
  { title, message }: { title: string; message: string },
): string {
  return `::${level} title=${encodeProperty(clip(title, TITLE_MAX))}::${encodeData(clip(message, ANNOTATION_MAX))}`
}

function encodeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function encodeProperty(text: string): string {
  return encodeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
