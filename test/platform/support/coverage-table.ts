import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** A part of the table that says which test shows what the specification says. */
export interface CoverageTable {
  /** What the rows begin with, before the number of their section. */
  readonly mark: string
  /** The sections that have a row at least, in their order. */
  readonly sections: readonly string[]
}

/** Tests, within a `describe`, that each section of a table has a row, and that each row names a test that there is. */
export function testCoverage({ mark, sections }: CoverageTable): void {
  const rows = readFileSync(path.join(ROOT, 'docs/specification-coverage.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(`| ${mark}`) && /\d/.test(line.charAt(2 + mark.length)))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, section = '', sentence = '', file = '', test = '']) => ({
      section: section.slice(mark.length),
      sentence,
      file,
      test,
    }))

  it('has a row for every part', () => {
    expect([...new Set(rows.map(({ section }) => section))]).toEqual(sections)
  })

  it.each(rows)('$section: $sentence', ({ sentence, file, test }) => {
    expect(sentence).toMatch(/\.$/)
    expect([file].filter((one) => existsSync(path.join(ROOT, one)))).toEqual([file])
    expect(titlesOf(file)).toContain(test)
  })
}

/** Titles of the tests of a file, as they are written there: the first text after `it(`, or after the rows of `it.each(…)(`. */
function titlesOf(file: string): Set<string> {
  const source = readFileSync(path.join(ROOT, file), 'utf8')
  return new Set([...source.matchAll(/(?:\bit\(|\)\()\s*(['"])((?:(?!\1).)+)\1,/g)].map(([, , title = '']) => title))
}
