import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRedactor, masksOf } from '../../src/action/masks.ts'

describe('masksOf', () => {
  it('masks a value of one line as it is', () => {
    expect(masksOf(' sk-12345 ')).toEqual(['sk-12345'])
  })

  it('masks the lines of a value of several, but no fragments', () => {
    expect(masksOf('-----BEGIN KEY-----\nabcd\n{\n  }\r\nxy\n\n')).toEqual(['-----BEGIN KEY-----', 'abcd'])
  })

  it('masks the leaves of JSON as well', () => {
    expect(masksOf('{"private_key": "line one\\nline two", "port": 54321, "on": true, "list": ["leaf-value", "x"]}')).toEqual([
      '{"private_key": "line one\\nline two", "port": 54321, "on": true, "list": ["leaf-value", "x"]}',
      'line one',
      'line two',
      '54321',
      'leaf-value',
    ])
  })

  it.each(['', '1', 'abc', 'true', 'FALSE', 'null'])('leaves %j alone: it would blank the log', (value) => {
    expect(masksOf(value)).toEqual([])
  })

  it('never gives a mask that is short or has a line end', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (value) => {
        for (const mask of masksOf(value)) expect(mask.length >= 4 && !/[\r\n]/.test(mask)).toBe(true)
      }),
    )
  })
})

describe('createRedactor', () => {
  it('knows a value in JSON, in an address and in base64', () => {
    const value = 'pass "word" & more'
    const redactor = createRedactor()
    redactor.add([value])
    const forms = [JSON.stringify(value), encodeURIComponent(value), Buffer.from(value).toString('base64')]
    expect(forms.map(redactor.redact)).toEqual(['"***"', '***', '***'])
  })

  it('replaces the longest first, so that nothing is left of a mask around another one', () => {
    const redactor = createRedactor()
    redactor.add(['secret'])
    redactor.add(['secret-and-more'])
    expect(redactor.redact('a secret-and-more, a secret')).toBe('a ***, a ***')
  })
})

describe('the parts of a value', () => {
  it.each<[string, string[]]>([
    ['abcd', ['abcd']],
    ['\tabcd\t', ['abcd']],
    [' abc ', []],
    ['None', []],
    ['nonesuch', ['nonesuch']],
    ['first line\rsecond line', ['first line', 'second line']],
    ['  first line \n\n\tsecond line', ['first line', 'second line']],
    ['same\nsame', ['same']],
    ['"a text that is JSON"', ['"a text that is JSON"']],
    ['{not JSON: "at all"}', ['{not JSON: "at all"}']],
    [' ["deep", [{"a": {"b": "deeper"}}]]', ['["deep", [{"a": {"b": "deeper"}}]]', 'deep', 'deeper']],
    ['[null, true, false, 1234, 12, "null", {}]', ['[null, true, false, 1234, 12, "null", {}]', '1234']],
    ['{\n  "key": "value"\n}', ['"key": "value"', 'value']],
    ['["one\\r\\n  two 2 "]', ['["one\\r\\n  two 2 "]', 'two 2']],
    ['say ["hello"]', ['say ["hello"]']],
  ])('%j are %j', (value, parts) => {
    expect(masksOf(value)).toEqual(parts)
  })
})

describe('the forms of a mask', () => {
  const redact = (mask: string, text: string) => {
    const redactor = createRedactor()
    redactor.add([mask])
    return redactor.redact(text)
  }

  it.each([
    ['as it is, everywhere', 'secret', 'secret, secret', '***, ***'],
    ['as JSON writes it', 'a"b\\c', String.raw`{"x":"a\"b\\c"}`, '{"x":"***"}'],
    ['as XML writes it', `<a>"b'&c`, 'x &lt;a&gt;&quot;b&apos;&amp;c y', 'x *** y'],
    ['as an address writes it', 'p/ss word', '?q=p%2Fss%20word', '?q=***'],
    ['as base64 writes it, with or without its end', 'secret1', 'c2VjcmV0MQ==|c2VjcmV0MQ', '***==|***'],
    ['the parts around an ampersand', 'abcdef&uvwxyz', 'abcdef uvwxyz', '*** ***'],
    ['but no short part', 'abcde&uvwxyz', 'abcde uvwxyz', 'abcde ***'],
    ['a broken character as well', 'half \ud800 done', 'half \ud800 done', '***'],
  ])('%s', (_, mask, text, redacted) => {
    expect(redact(mask, text)).toBe(redacted)
  })

  it('hides nothing before it knows anything, and everything that it was ever told', () => {
    const redactor = createRedactor()
    expect(redactor.redact('first second')).toBe('first second')
    redactor.add(['first'])
    redactor.add(['second'])
    expect(redactor.redact('first second')).toBe('*** ***')
  })
})
