import { describe, expect, it } from 'vitest'
import { parseAssistant, parseExpect, parseSmokeInput } from '../../../src/action/parse/smoke-test.ts'

describe('smoke-test-input', () => {
  it('is a JSON object', () => {
    const text = '{"messages": [{"role": "user", "content": "ping"}], "__proto__": 1}'
    expect(parseSmokeInput(text)).toEqual({ value: JSON.parse(text) })
    expect(parseSmokeInput('{}')).toEqual({ value: {} })
  })

  it.each([
    ['[]', 'is JSON, but an array'],
    ['null', 'is JSON, but null'],
    ['"ping"', 'is JSON, but a string'],
    ['7', 'is JSON, but a number'],
    ['messages: []', 'is not JSON'],
    ["{'a': 1}", 'is not JSON at position 1 (line 1 column 2)'],
    ['{"password": "hunter2",\n}', 'is not JSON at position 24 (line 2 column 1)'],
  ])('%j is not', (text, problem) => {
    expect(parseSmokeInput(text)).toEqual({ problem })
  })
})

describe('smoke-test-assistant', () => {
  it.each(['agent', 'fe096781-5601-53d2-b2f6-0d3403f7e9ca', 'my agent', 'ägent'])('%s is a name', (text) => {
    expect(parseAssistant(text)).toEqual({ value: text })
  })

  it.each(['a\nb', 'a\u0000', 'x'.repeat(256)])('%j is none', (text) => {
    expect(parseAssistant(text)).toEqual({ problem: 'is no name of an assistant' })
  })
})

describe('smoke-test-expect', () => {
  it.each(['pong', '^\\d+$', '(?i:pong)', '{"a": 1}', 'a{1,2}'])('%s is an expression', (text) => {
    expect(parseExpect(text)).toEqual({ value: text })
  })

  it.each([
    ['(', 'is not a regular expression (Unterminated group)'],
    ['[z-a]', 'is not a regular expression (Range out of order in character class)'],
    ['(?<n>a)(?<n>b)', 'is not a regular expression (Duplicate capture group name)'],
    ['x'.repeat(2001), 'is 2001 characters long'],
  ])('%s is none', (text, problem) => {
    expect(parseExpect(text)).toEqual({ problem })
  })
})
