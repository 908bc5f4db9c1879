import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FIELDS } from '../../../src/action/parse/fields.ts'
import { INPUT_NAMES, inputSpec } from '../../../src/action/registry.ts'

/** Pieces that inputs are made of, rightly or wrongly put together. */
const piece = fc.constantFrom(
  'https://',
  'git@',
  'github.com',
  ':8080',
  '/team/agent',
  '.git',
  '?x=1',
  '#a',
  'user:pass@',
  'refs/tags/',
  'refs/heads/',
  'v1.2.3',
  'main',
  '1h',
  '30m',
  '90s',
  '7d',
  '-24h',
  'now',
  '2026-08-19',
  'T00:00:00Z',
  '+02:00',
  'true',
  'FALSE',
  'yes',
  'us',
  'deploy',
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\n',
  '\r',
  '\0',
  '\u2028',
  '\ud800',
  '💡',
  ' ',
  '\t',
  'A=',
  'A<<END\n',
  'END',
  '#',
  '(',
  ')',
  'eq(',
  'name',
  'and(',
  'id',
  '..',
  '*',
  '&a ',
  '*a',
  '!!js/function',
  '- ',
  's3://',
  '%',
  '\\',
  '::error::',
  '$(x)',
  '`',
  '1b4e28ba-2fa1-4d2b-883f-0016d3cca427',
  '99999999999',
  '0',
)
const texts = fc.oneof(
  fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.string({ minLength: 1, maxLength: 200, unit: 'binary' }),
)

describe.each(INPUT_NAMES)('the parser of %s', (name) => {
  const { parse } = FIELDS[name] as { parse: (text: string) => object }

  it('gives a value or a clause on what is wrong, whatever the text, and the same one each time', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const parsed = parse(text) as { value?: unknown; problem?: string; fix?: string }
        expect(Object.keys(parsed).every((key) => ['value', 'problem', 'fix'].includes(key))).toBe(true)
        if ('value' in parsed) expect(parsed.problem ?? parsed.fix).toBeUndefined()
        // It goes on after the name of the input, in one sentence.
        else expect(parsed.problem).toMatch(/^\S/)
        expect(parse(text)).toEqual(parsed)
      }),
      { numRuns: 150 },
    )
  })
})

describe.each(INPUT_NAMES.filter((name) => inputSpec(name).secret))('the parser of the secret %s', (name) => {
  const { parse } = FIELDS[name] as { parse: (text: string) => object }

  it('never says what it was given', () => {
    fc.assert(
      // What stands before `=` or `<<` is a name, and no secret: a problem may say it.
      fc.property(fc.stringMatching(/^[ -~]{0,20}[=\n ]Qx7Wz9[ -;>-~\n]{0,20}$/), (text) => {
        expect(JSON.stringify({ ...parse(text), value: undefined })).not.toContain('Qx7Wz9')
      }),
      { numRuns: 300 },
    )
  })
})
