import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FilterError } from '../../../src/contract/filter/filter-error.ts'
import { tokenise } from '../../../src/contract/filter/tokens.ts'

const values = (source: string) => tokenise(source).flatMap((token) => ('value' in token ? [token.value] : []))

function positionOfFault(source: string): number | null {
  try {
    tokenise(source)
    return null
  } catch (error) {
    if (error instanceof FilterError) return error.position
    throw error
  }
}

describe('a number', () => {
  it.each([
    ['0', 0],
    ['-12', -12],
    ['+12', 12],
    ['12.', 12],
    ['12.25', 12.25],
    ['.125', 0.125],
    ['-.5', -0.5],
    ['1e3', 1000],
    ['1E3', 1000],
    ['1e+3', 1000],
    ['12.5e-1', 1.25],
    ['1e10', 10_000_000_000],
  ])('%s is one', (source, value) => {
    expect(tokenise(source)).toEqual([
      { kind: 'number', value, position: 0 },
      { kind: 'end', position: source.length },
    ])
  })

  it.each([['.'], ['+'], ['-x'], ['.x'], ['*1']])('%s is none', (source) => {
    expect(positionOfFault(source)).toBe(0)
  })

  it('is read as JavaScript writes it', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(values(String(number))).toEqual([Object.is(number, -0) ? 0 : number])
      }),
    )
  })
})

describe('a text', () => {
  it('is read as JSON writes it, between other tokens', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.constantFrom('', ' ', '\n\t '), (text, space) => {
        fc.pre(!text.includes('\0') && text.isWellFormed())
        const source = `name${space},${space}${JSON.stringify(text)}${space})`
        expect(values(source)).toEqual([text])
        expect(tokenise(source).map(({ kind }) => kind)).toEqual(['name', 'mark', 'text', 'mark', 'end'])
      }),
    )
  })

  it.each([
    [String.raw`"\r"`, '\r'],
    [String.raw`"\t"`, '\t'],
    [String.raw`"\b"`, '\b'],
    [String.raw`"\f"`, '\f'],
    [String.raw`"\/"`, '/'],
    [String.raw`"\n\\\""`, '\n\\"'],
    [String.raw`'\''`, "'"],
    [`"it's"`, "it's"],
    [`'"'`, '"'],
    [String.raw`"\u00e4\ud83c\udf0d"`, 'ä🌍'],
    // What a pattern needs reaches it as it is.
    [String.raw`"100\%"`, String.raw`100\%`],
    ['""', ''],
  ])('%s has the escapes of JSON, and quotes of either kind', (source, text) => {
    expect(values(source)).toEqual([text])
  })

  it.each([
    ['a "never ends', 2],
    [String.raw`"ends in an escape \ `.trimEnd(), 0],
    [String.raw`"\u12"`, 1],
    [String.raw`"\ux1234"`, 1],
    [String.raw`"\u123x"`, 1],
    ['"a" "\0"', 4],
  ])('%j is told where it begins to be none', (source, position) => {
    expect(positionOfFault(source)).toBe(position)
  })
})

describe('the place of every token', () => {
  it('is where its first character stands', () => {
    const piece = fc.constantFrom('eq', '(', ')', '[', ']', ',', ' ', '  ', '\n', '"a b"', "'c'", '12', '-3.5', 'name_1')
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const source = pieces.join(' ')
        for (const token of tokenise(source)) {
          const rest = source.slice(token.position)
          if (token.kind === 'end') expect(rest).toBe('')
          else if (token.kind === 'name') expect(rest.startsWith(token.name)).toBe(true)
          else if (token.kind === 'mark') expect(rest.startsWith(token.mark)).toBe(true)
          else if (token.kind === 'text') expect(rest.slice(1).startsWith(token.value)).toBe(true)
          else expect(rest.startsWith(String(token.value))).toBe(true)
        }
        expect(tokenise(source)).toHaveLength(pieces.filter((one) => one.trim() !== '').length + 1)
      }),
    )
  })
})
