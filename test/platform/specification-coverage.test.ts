import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The control-plane parts of the specification: each has a row at least. */
const SECTIONS = ['1.1', '1.2', '1.3', '1.5', '2.1', '2.2', '2.3', '2.4', '2.5', '3.1', '4', '4.1', '5.1', '5.2', '5.5', '7.1', '8.1', '9.1']

const rows = readFileSync(path.join(ROOT, 'docs/specification-coverage.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, section = '', sentence = '', file = '', test = '']) => ({ section, sentence, file, test }))

/** Titles of the tests of a file, as they are written there: the first text after `it(`, or after the rows of `it.each(…)(`. */
function titlesOf(file: string): Set<string> {
  const source = readFileSync(path.join(ROOT, file), 'utf8')
  return new Set([...source.matchAll(/(?:\bit\(|\)\()\s*(['"])((?:(?!\1).)+)\1,/g)].map(([, , title = '']) => title))
}

describe('the table of the specification', () => {
  it('has a row for every part', () => {
    expect([...new Set(rows.map(({ section }) => section))]).toEqual(SECTIONS)
  })

  it.each(rows)('$section: $sentence', ({ sentence, file, test }) => {
    expect(sentence).toMatch(/\.$/)
    expect([file].filter((name) => existsSync(path.join(ROOT, name)))).toEqual([file])
    expect(titlesOf(file)).toContain(test)
  })
})
