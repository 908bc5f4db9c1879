import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { RATE_LIMIT_RULES, type RateLimit, type RateLimitRule } from '../../src/contract/rate-limits.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8')

const IDENTITIES = { key: 'key', user: 'user and address', ip: 'address' } as const

function rowOf({ id, match, identity, us, eu, category }: RateLimitRule): string {
  const matches = match.map(({ method, path: route }) => {
    if (route === undefined) return method ?? 'any'
    return `\`${method === undefined ? '' : `${method} `}${route}\``
  })
  const limit = ({ count, seconds }: RateLimit) => `${count} / ${seconds} s`
  return `| \`${id}\` | ${matches.join(', ')} | ${IDENTITIES[identity]} | ${limit(us)} | ${limit(eu)} | ${category} |`
}

/** The table of docs/rate-limits.md, as it should be. */
function renderTable(): string {
  return ['| id | request | counted by | US | EU | category |', '|---|---|---|---|---|---|', ...RATE_LIMIT_RULES.map(rowOf)].join('\n')
}

it('the page has the table of the contract', () => {
  expect(/<!-- table:start[^\n]*\n([^]*?)\n?<!-- table:end -->/.exec(read('docs/rate-limits.md'))?.[1]).toBe(renderTable())
})

describe('the table of the specification about rate limits', () => {
  const rows = read('docs/specification-coverage.md')
    .split('\n')
    .filter((line) => line.startsWith('| limits '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, , sentence = '', file = '', test = '']) => ({ sentence, file, test }))

  it('has rows', () => {
    expect(rows.length).toBeGreaterThan(10)
  })

  it.each(rows)('$sentence', ({ sentence, file, test }) => {
    expect(sentence).toMatch(/\.$/)
    expect([file].filter((name) => existsSync(path.join(ROOT, name)))).toEqual([file])
    expect(read(file).replaceAll("\\'", "'")).toContain(test)
  })
})
