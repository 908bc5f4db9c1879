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
