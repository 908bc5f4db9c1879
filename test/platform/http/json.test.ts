import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEPTH_MAX, findUnfit, parseJsonBody, VALUES_MAX } from '../../../src/platform/http/json.ts'

const parse = (text: string) => parseJsonBody(Buffer.from(text))
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

describe('a body', () => {
  it('is read back as any JSON was written', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(parse(JSON.stringify(value, null, 2))).toEqual({ ok: true, value: JSON.parse(JSON.stringify(value)) as unknown })
      }),
    )
  })

  it.each(['', ' ', '\r\n\t', '\ufeff', '\ufeff '])('that is empty (%j) is none', (text) => {
    expect(parse(text)).toEqual({ ok: true, value: undefined })
  })

  it('may begin with a byte order mark', () => {
    expect(parse('\ufeff{"a":1}')).toEqual({ ok: true, value: { a: 1 } })
  })

  it('counts the last of keys given twice', () => {
    expect(parse('{"a":1,"a":2}')).toEqual({ ok: true, value: { a: 2 } })
  })

  it.each(['{', '{"a":}', 'nul', "{'a':1}", '[1,]', 'NaN', 'Infinity', '1 2', '{"a":1}}', 'a=b', '\u0000', '{"a":"\n"}'])(
    'that is not JSON (%j) is refused in its place',
    (text) => {
      const parsed = parse(text)
      expect(parsed).toMatchObject({ ok: false, errors: [{ msg: 'JSON decode error', type: 'json_invalid' }] })
      if (!parsed.ok) expect(parsed.errors[0]?.loc[0]).toBe('body')
    },
  )

  it('says where it stops being JSON, and repeats nothing of it', () => {
    const parsed = parse('{"secret": "s3cr3t" "x"}')
    expect(parsed).toEqual({ ok: false, errors: [{ loc: ['body', 20], msg: 'JSON decode error', type: 'json_invalid' }] })
  })

  it.each([
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le').subarray(0, 13)],
    ['Latin-1', Buffer.from('{"a":"é"}', 'latin1')],
    ['a cut sequence', Buffer.from([0x22, 0xe2, 0x82, 0x22])],
    ['gzip', Buffer.from([0x1f, 0x8b, 8, 0, 0, 0])],
  ])('in %s is refused', (_what, bytes) => {
    expect(parseJsonBody(bytes)).toMatchObject({ ok: false, errors: [{ type: 'json_invalid' }] })
  })

  it('may be nested so deep and no deeper, however large it is', () => {
    expect(parse(nested(DEPTH_MAX)).ok).toBe(true)
    expect(parse(nested(DEPTH_MAX + 1))).toMatchObject({ ok: false, errors: [{ type: 'json_invalid' }] })
    expect(parse(nested(2_000_000)).ok).toBe(false)
    expect(parse('{"a":'.repeat(500_000)).ok).toBe(false)
    expect(parse(JSON.stringify({ text: '[[[['.repeat(1000), quote: '\\"[' })).ok).toBe(true)
  })
})

describe('a value that no schema would refuse', () => {
  it.each<[string, string, (string | number)[], string]>([
    ['a NUL', '{"a":["x","y\\u0000"]}', ['a', 1], 'value_error'],
    ['a NUL in a key', '{"a":{"b\\u0000":1}}', ['a', 'b\0'], 'value_error'],
    ['half a surrogate pair', '{"a":"\\ud800"}', ['a'], 'string_unicode'],
    ['half a surrogate pair in a key', '{"\\udc00":1}', ['\udc00'], 'string_unicode'],
    ['a number beyond any double', '[1e999]', [0], 'finite_number'],
    ['a key that is a prototype', '{"a":{"__proto__":{"b":1}}}', ['a', '__proto__'], 'extra_forbidden'],
  ])('is %s', (_what, text, loc, type) => {
    const parsed = parse(text)
    expect(parsed.ok && findUnfit(parsed.value)).toMatchObject([{ loc, type }])
  })

  it.each(['"😀"', '{"constructor":1,"prototype":2}', '1e308', '[]', 'null', '"\\u0001"'])('is not %s', (text) => {
    const parsed = parse(text)
    expect(parsed.ok && findUnfit(parsed.value)).toEqual([])
  })

  it('is one of too many', () => {
    expect(findUnfit(Array.from({ length: VALUES_MAX - 1 }, () => 0))).toEqual([])
    expect(findUnfit(Array.from({ length: VALUES_MAX }, () => 0))).toMatchObject([{ loc: [], type: 'value_error' }])
    expect(findUnfit(Array.from({ length: VALUES_MAX * 5 }, () => '\0'))).toHaveLength(1)
  })

  it('does not change a prototype', () => {
    parse('{"__proto__":{"polluted":1}}')
    expect({}).not.toHaveProperty('polluted')
  })
})
