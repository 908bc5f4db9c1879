import type { Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'

/** A longer line is cut: one line must not fill a log. */
export const LINE_MAX_BYTES = 8192

export type OutputStream = 'stdout' | 'stderr'

/**
 * Gives the lines of a stream one by one, without colours and control characters. A carriage return ends a line as well: progress
 * is drawn with it. Resolves when the stream has ended or broken off. Holds at most one line in memory.
 */
export function splitLines(
  stream: Readable | null,
  name: OutputStream,
  onLine: (line: string, stream: OutputStream) => void,
): Promise<void> {
  if (stream === null) return Promise.resolve()
  let pending = ''
  let cut = false
  const emit = () => {
    const line = clean(pending)
    if (line !== '') onLine(cut ? `${line} … (line cut at ${LINE_MAX_BYTES} bytes)` : line, name)
    pending = ''
    cut = false
  }
  const take = (piece: string) => {
    if (cut) return
    pending += piece
    if (Buffer.byteLength(pending) <= LINE_MAX_BYTES) return
    pending = Buffer.from(pending).subarray(0, LINE_MAX_BYTES).toString('utf8').replace(/\uFFFD+$/, '')
    cut = true
  }
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const pieces = chunk.split(/\r\n|\n|\r/)
    take(pieces[0] ?? '')
    for (const piece of pieces.slice(1)) {
      emit()
      take(piece)
    }
  })
  return new Promise((resolve) => {
    stream.once('close', () => {
      emit()
      resolve()
    })
    stream.once('error', () => stream.destroy())
  })
}

function clean(line: string): string {
  return stripVTControlCharacters(line)
    .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '')
    .trimEnd()
}

/** Keeps the last lines, for the sentence that tells of a failure. */
export function createTail(limit: number): { push(line: string): void; lines(): string[] } {
  const kept: string[] = []
  return {
    push(line) {
      kept.push(line)
      if (kept.length > limit) kept.shift()
    },
    lines: () => [...kept],
  }
}
