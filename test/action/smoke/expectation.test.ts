import { describe, expect, it } from 'vitest'
import { matchText } from '../../../src/action/smoke/expectation.ts'

describe('an expression', () => {
  it.each([
    ['echo', 'an echo', 'matches'],
    ['^echo$', 'an echo', 'differs'],
    ['(?i:ECHO)', 'an echo', 'matches'],
    ['grüße\\s🌍', 'grüße 🌍', 'matches'],
    ['^$', '', 'matches'],
    ['a.c', 'a\nc', 'differs'],
    ["';process.exit(0);'", 'x', 'differs'],
  ])('%s on %j: %s', (pattern, text, verdict) => {
    expect(matchText({ pattern, text })).toBe(verdict)
  })

  it('searches a long text', () => {
    expect(matchText({ pattern: 'needle\\d+', text: `${'hay '.repeat(250_000)}needle7` })).toBe('matches')
  })

  it.each([
    ['^(a+)+$', `${'a'.repeat(60)}!`],
    ['(a|a)*b', 'a'.repeat(60)],
    ['(.*)*x', 'y'.repeat(100_000)],
    ['.*.*.*=', 'x'.repeat(100_000)],
    ['(\\w+\\s?)+$', `${'word '.repeat(100_000)}!`],
  ])('%s is given up when it takes too long', (pattern, text) => {
    const start = performance.now()
    expect(matchText({ pattern, text, limitMs: 100 })).toBe('too-slow')
    expect(performance.now() - start).toBeLessThan(1500)
  })
})
