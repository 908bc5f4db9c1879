import { describe, expect, it } from 'vitest'
import { parseSyntax } from '../../../src/contract/filter/syntax.ts'

describe('what a filter text says', () => {
  it('is a call of calls, names, values and lists, each with its place', () => {
    expect(parseSyntax('f(g(), a, "b", -1.5, None, [True, "c",],)')).toEqual({
      kind: 'call',
      name: 'f',
      position: 0,
      arguments: [
        { kind: 'call', name: 'g', arguments: [], position: 2 },
        { kind: 'name', name: 'a', position: 7 },
        { kind: 'literal', value: 'b', position: 10 },
        { kind: 'literal', value: -1.5, position: 15 },
        { kind: 'literal', value: null, position: 21 },
        {
          kind: 'list',
          position: 27,
          items: [
            { kind: 'literal', value: true, position: 28 },
            { kind: 'literal', value: 'c', position: 34 },
          ],
        },
      ],
    })
  })

  it.each([
    ['true', true],
    ['True', true],
    ['false', false],
    ['False', false],
    ['null', null],
    ['None', null],
  ])('has the constant %s', (word, value) => {
    expect(parseSyntax(`f(${word})`).arguments).toEqual([{ kind: 'literal', value, position: 2 }])
  })

  it.each(['TRUE', 'constructor', 'undefined'])('has no constant %s', (word) => {
    expect(parseSyntax(`f(${word})`).arguments).toEqual([{ kind: 'name', name: word, position: 2 }])
  })
})

describe('what it cannot say', () => {
  it.each([
    ['(f())', 'expected a call, a field or a value, not "(" (at character 1)'],
    ['f(,)', 'expected a call, a field or a value, not "," (at character 3)'],
    ['f(a,', 'expected a call, a field or a value, not the end of the filter (at character 5)'],
    ['f([)', 'expected a call, a field or a value, not ")" (at character 4)'],
    ['f(a b)', 'expected "," or ")", not "b" (at character 5)'],
    ['f(a 7)', 'expected "," or ")", not the number 7 (at character 5)'],
    ['f(a "b")', 'expected "," or ")", not a text (at character 5)'],
    ['f(a]', 'expected "," or ")", not "]" (at character 4)'],
    ['f(a(', 'expected a call, a field or a value, not the end of the filter (at character 5)'],
    ['f(["a")', 'expected "," or "]", not ")" (at character 7)'],
    ['f([["a"]])', 'a list holds texts and numbers only (at character 4)'],
    ['f() g', 'unexpected "g" after the end of the filter (at character 5)'],
    ['f() 7', 'unexpected the number 7 after the end of the filter (at character 5)'],
    ['f())', 'unexpected ")" after the end of the filter (at character 4)'],
    ['"f"', 'a filter is a call such as eq(name, "…") (at character 1)'],
  ])('%s', (text, message) => {
    expect(() => parseSyntax(text)).toThrow(message)
  })
})

describe('its bounds', () => {
  const nested = (depth: number) => `${'f('.repeat(depth)}${')'.repeat(depth)}`
  const list = (count: number) => `f([${'1,'.repeat(count)}])`
  const calls = (count: number) => `f(${'g(),'.repeat(count - 1)})`

  it('are 64 calls in one another', () => {
    expect(parseSyntax(nested(64)).name).toBe('f')
    expect(() => parseSyntax(nested(65))).toThrow('a filter is at most 64 calls deep (at character 129)')
  })

  it('are 500 calls', () => {
    expect(parseSyntax(calls(500)).arguments).toHaveLength(499)
    expect(() => parseSyntax(calls(501))).toThrow('a filter has at most 500 calls')
  })

  it('are 1000 items in one pair of brackets', () => {
    expect(parseSyntax(list(1000)).arguments).toMatchObject([{ items: { length: 1000 } }])
    expect(() => parseSyntax(list(1001))).toThrow('at most 1000 items can stand here (at character 2004)')
    expect(() => parseSyntax(`f(${'a,'.repeat(1001)})`)).toThrow('at most 1000 items can stand here (at character 2003)')
  })
})
