import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutBytes, detailOf, excerptOf, EXCERPT_MAX_BYTES, plainText, safeText } from '../../src/client/excerpt.ts'
import { createRedactor, hideJsonSecrets, secretHeaderValues, secretValuesIn } from '../../src/client/redaction.ts'

const same = (text: string) => text

/** Characters of one to four bytes, what JSON and addresses escape, and half a pair. */
const unit = fc.constantFrom('a', 'Z', '0', ' ', '"', '\\', '/', '\n', '\r\n', '\u0000', '%', '$&', 'é', '€', '🚀', '\ud83d')
const hiding = (...values: string[]) => createRedactor({ redact: same, values })

describe('createRedactor', () => {
  it('hides a value as it is, as JSON, as an address and line by line', () => {
    const secret = 'first line é\n"second" line'
    const redact = hiding(secret)
    expect(redact(`<${secret}>`)).toBe('<***>')
    expect(redact(JSON.stringify({ a: secret }))).toBe('{"a":"***"}')
    expect(redact(String.raw`{"a":"first line \u00e9\n\"second\" line"}`)).toBe('{"a":"***"}')
    expect(redact(`?a=${encodeURIComponent(secret)}`)).toBe('?a=***')
    expect(redact('in line 1: first line é')).toBe('in line 1: ***')
  })

  it('hides lines of eight characters and more', () => {
    const redact = hiding('12345678\nabcdefg')
    expect(redact('12345678 and abcdefg')).toBe('*** and abcdefg')
  })

  it('hides the longer of two values first', () => {
    expect(hiding('abcd', 'abcdefgh')('abcdefgh abcd')).toBe('*** ***')
  })

  it('leaves common words alone', () => {
    expect(hiding('', 'a', 'yes')('yes, a sentence')).toBe('yes, a sentence')
  })

  it('hides what the caller hides, too', () => {
    expect(createRedactor({ redact: (text) => text.replace('mine', '***'), values: ['yours'] })('mine yours')).toBe('*** ***')
  })

  it('never shows a value, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4, unit }), fc.string(), fc.string(), (secret, before, after) => {
        fc.pre(!secret.includes('*'))
        const redact = hiding(secret)
        for (const text of [secret, JSON.stringify(secret).slice(1, -1)]) {
          const shown = redact(`${before}${text}${after}`)
          expect(shown.length).toBeLessThanOrEqual(before.length + text.length + after.length)
          expect(redact(text)).toBe('***')
        }
      }),
    )
  })
})

describe('hideJsonSecrets', () => {
  it.each([
    ['{"name":"A","value":"x"}', '{"name":"A","value":"***"}'],
    ['{"value" : "x\\"y"}', '{"value" : "***"}'],
    ['{"value":"cut o', '{"value":"***"'],
    ['{"value":"cut o\\', '{"value":"***"'],
    ['{"value":"two\nlines"}', '{"value":"***"}'],
    ['{"aws_secret_access_key":"x","ApiKey":"y","token":"z"}', '{"aws_secret_access_key":"***","ApiKey":"***","token":"***"}'],
    ['{"input":"x","msg":"kept"}', '{"input":"***","msg":"kept"}'],
    ['{"total_tokens":12,"detail":"kept"}', '{"total_tokens":12,"detail":"kept"}'],
  ])('%s', (text, expected) => {
    expect(hideJsonSecrets(text)).toBe(expected)
  })

  it('is quick on a long text', () => {
    const since = Date.now()
    for (const text of [
      '"'.repeat(1_000_000),
      `"${'a'.repeat(4_000_000)}`,
      '"value":'.repeat(300_000),
      '"token'.repeat(300_000),
    ]) {
      hideJsonSecrets(text)
    }
    expect(Date.now() - since).toBeLessThan(3000)
  })
})

describe('secrets of a request', () => {
  it('are found in the headers by name', () => {
    const headers = { 'X-Api-Key': 'a', Authorization: 'b', 'X-Tenant-Id': 'c', accept: 'd', Cookie: 'e' }
    expect(secretHeaderValues(headers)).toEqual(['a', 'b', 'e'])
  })

  it('are found in the body', () => {
    const body = {
      title: 'my-agent',
      value: 'no pair, no secret',
      secrets: [
        { name: 'A', value: 'a' },
        { name: 'B', value: 'b' },
      ],
      credentials: { access_key_id: 'c', secret_access_key: 'd', region: 'eu' },
      nothing: null,
    }
    expect(secretValuesIn(body)).toEqual(['a', 'b', 'c', 'd'])
    expect(secretValuesIn('text')).toEqual([])
    expect(secretValuesIn(undefined)).toEqual([])
  })

  it('are looked for only so deep', () => {
    const nested: Record<string, unknown> = {}
    nested['self'] = nested
    expect(secretValuesIn(nested)).toEqual([])
    const list: unknown[] = []
    list.push(list)
    expect(secretValuesIn(list)).toEqual([])
    const below = (levels: number): unknown => (levels === 0 ? { token: 'a' } : { inner: below(levels - 1) })
    expect(secretValuesIn(below(8))).toEqual(['a'])
    expect(secretValuesIn(below(9))).toEqual([])
  })
})

describe('texts from outside', () => {
  it('become one line without control characters', () => {
    expect(plainText(' a\r\n::error::b\u001b[31m\u2028c\u202ed\u200be\u0000 ')).toBe('a ::error::b [31m cde')
  })

  it('are redacted even where a control character was put into a secret', () => {
    expect(safeText('my-se\u200bcret', hiding('my-secret'))).toBe('***')
  })

  it('are left as they are when they just fit', () => {
    expect(cutBytes('né', 3)).toBe('né')
    expect(cutBytes('née', 3)).toBe('…')
  })

  it('are cut to whole characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'é', '€', '🚀') }), fc.integer({ min: 3, max: 40 }), (text, max) => {
        const cut = cutBytes(text, max)
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(Math.max(max, Buffer.byteLength('…')))
        expect(cut).not.toContain('\ufffd')
        expect(cut === text || (cut.endsWith('…') && text.startsWith(cut.slice(0, -1)))).toBe(true)
      }),
    )
  })
})

describe('excerptOf', () => {
  it('is null for nothing', () => {
    expect(excerptOf(' \n', same)).toBeNull()
  })

  it('is looked for only in the first 256 Ki characters', () => {
    expect(excerptOf(`${' '.repeat(262_143)}found`, same)).toBe('f')
  })

  it('is 2 KB at most, and a secret at the cut does not show its half', () => {
    const excerpt = excerptOf(
      `${'x'.repeat(EXCERPT_MAX_BYTES - 8)}my-very-long-secret${'y'.repeat(100)}`,
      hiding('my-very-long-secret'),
    )
    expect(Buffer.byteLength(excerpt ?? '')).toBe(EXCERPT_MAX_BYTES)
    expect(excerpt).toContain('x***yy')
  })
})

describe('detailOf', () => {
  it.each([
    [{ detail: 'a' }, 'a'],
    [{ detail: { message: 'b' } }, 'b'],
    [{ detail: { msg: 'c' } }, 'c'],
    [{ detail: { detail: 'cc' } }, 'cc'],
    [{ detail: { other: 1 }, message: 'd' }, 'd'],
    [{ detail: '', message: 'e' }, 'e'],
    [{ error: 'f', details: 'more' }, 'f'],
    [{ errors: ['g', { message: 'h' }] }, 'g\nh'],
    [{ detail: [{ loc: [], msg: 'i' }] }, 'i'],
    [{ detail: [{ loc: ['query', 'limit'] }] }, 'query.limit: not valid'],
    [{ detail: [7, null] }, null],
    ['j', 'j'],
    [['k'], null],
    [7, null],
    [null, null],
    [{}, null],
    [{ detail: ' \n' }, null],
  ])('%j', (body, expected) => {
    expect(detailOf(JSON.stringify(body), same)).toBe(expected)
  })

  it('is null for what is not JSON', () => {
    expect(detailOf('<html>', same)).toBeNull()
  })

  it('shows all of what just fits', () => {
    const faults = Array.from({ length: 20 }, () => ({ msg: 'x'.repeat(500) }))
    expect(detailOf(JSON.stringify({ detail: faults }), same)).toBe(Array.from({ length: 20 }, () => 'x'.repeat(500)).join('\n'))
  })

  it('is short', () => {
    const faults = Array.from({ length: 30 }, (_, index) => ({ loc: ['body', index], msg: 'x'.repeat(1000) }))
    const lines = detailOf(JSON.stringify({ detail: faults }), same)?.split('\n') ?? []
    expect(lines).toHaveLength(21)
    expect(lines[20]).toBe('… and 10 more')
    expect(lines[0]).toHaveLength(500)
    expect(lines[0]).toMatch(/^body\.0: x+…$/)
  })
})
