import { readFileSync, writeFileSync } from 'node:fs'
import { ERROR_CODES, type ErrorCode } from '../src/action/report/error-codes.ts'
import { inRoot } from './root.ts'

/**
 * What the bundle prints for each error code, as the README shows it. `test/acceptance/error-examples.test.ts` brings each of these
 * failures about and holds the file to it; with UPDATE_EXAMPLES=1 it writes the file.
 */
export type ErrorExamples = Readonly<Record<ErrorCode, readonly string[]>>

const FILE = inRoot('scripts/error-examples.json')
const CODES = Object.keys(ERROR_CODES) as ErrorCode[]
const MAX_COLUMNS = 100

/** The examples by code, in lines. A code without one has an empty example. */
export function readErrorExamples(): ErrorExamples {
  const stored = JSON.parse(readFileSync(FILE, 'utf8')) as Partial<ErrorExamples>
  return Object.fromEntries(CODES.map((code) => [code, stored[code] ?? []])) as unknown as ErrorExamples
}

export function writeErrorExamples(examples: ErrorExamples): void {
  const inOrder = Object.fromEntries(CODES.map((code) => [code, examples[code]]))
  writeFileSync(FILE, `${JSON.stringify(inOrder, null, 2)}\n`)
}

/** The part of a red annotation that says what happened: what was tried and what to do come after it. */
export function exampleOf(message: string): string[] {
  const lines = message.split('\n')
  const end = lines.findIndex((line) => /^(?:Afterwards|What was tried|What to do): /.test(line))
  return end === -1 ? lines : lines.slice(0, end)
}

/** The same text for every run: ids, ports, and how long or how often something was tried are left open. */
export function withoutChance(lines: readonly string[]): string {
  return lines
    .join('\n')
    .replace(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g, '<id>')
    .replace(/127\.0\.0\.1:\d+/g, '<address>')
    .replace(/\b\d+(?= (?:s|times)\b)/g, '<number>')
}

/** A block for Markdown that needs no scrolling sideways. Throws when a code has no example. */
export function renderExample(code: ErrorCode, examples: ErrorExamples): string {
  const lines = examples[code]
  if (lines.length === 0)
    throw new Error(`${code} has no example: UPDATE_EXAMPLES=1 npx vitest run test/acceptance/error-examples.test.ts`)
  return ['```text', ...lines.flatMap(wrapped), '```'].join('\n')
}

function wrapped(line: string): string[] {
  const rows: string[] = []
  for (const word of line.split(' ')) {
    const row = rows.at(-1)
    if (row !== undefined && row.length + 1 + word.length <= MAX_COLUMNS) rows[rows.length - 1] = `${row} ${word}`
    else rows.push(word)
  }
  return rows
}
