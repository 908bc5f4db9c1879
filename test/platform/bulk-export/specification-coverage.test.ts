import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** The parts of the specification about bulk export: each has a row at least. */
const SECTIONS = ['1.5', '2.6', '2.7', '2.8', '2.9', '2.10', '3.2', '4.3', '5.2', '7.2', '7.3', '7.4', '7.5', '7.6', '8.2', '9.3']

const rows = readFileSync(path.join(ROOT, 'docs/specification-coverage.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| § '))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, section = '', sentence = '', file = '', test = '']) => ({ section: section.slice(2), sentence, file, test }))

/** Titles of the tests of a file, as they are written there. */
function titlesOf(file: string): Set<string> {
  const source = readFileSync(path.join(ROOT, file), 'utf8')
  return new Set([...source.matchAll(/(?:\bit\(|\)\()\s*(['"])((?:(?!\1).)+)\1,/g)].map(([, , title = '']) => title))
}

describe('the table of the specification about bulk export', () => {
  it('has a row for every part', () => {
    expect([...new Set(rows.map(({ section }) => section))]).toEqual(SECTIONS)
  })

  it.each(rows)('$section: $sentence', ({ sentence, file, test }) => {
    expect(sentence).toMatch(/\.$/)
    expect([file].filter((name) => existsSync(path.join(ROOT, name)))).toEqual([file])
    expect(titlesOf(file)).toContain(test)
  })
})
