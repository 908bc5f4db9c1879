import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { block, clipBytes, code, html, inline, link, prose } from '../../../src/action/report/markdown.ts'

const hostile = fc.string({
  unit: fc.constantFrom(
    '<',
    '>',
    '`',
    '|',
    '[',
    ']',
    '(',
    ')',
    '*',
    '_',
    '#',
    '&',
    '\n',
    '\r',
    '-',
    '"',
    "'",
    'a',
    '@',
    ':',
    '/',
    'w',
    '.',
    '1',
    ' ',
    '\\',
    '~',
    '$',
    '!',
    '\u202e',
    '\x1b',
  ),
})

describe('inline', () => {
  it('leaves nothing that Markdown or HTML could read', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.string({ unit: 'binary' })), (text) => {
        const rest = inline(text).replace(/&#\d+;/g, ',')
        expect(rest).not.toMatch(/[<>`|[\]*#&\n\r@\\~$!{}"^]/)
        expect(rest).not.toMatch(/^[-+=\s]|^\d+[.)]|:\S|www\./i)
        expect(rest).not.toMatch(/(^|[^\p{L}\p{N}])_|_([^\p{L}\p{N}]|$)/u)
      }),
    )
  })

  it.each([
    ['www.evil.example', 'www&#46;evil.example'],
    ['https://evil.example', 'https&#58;//evil.example'],
    ['1. one', '1&#46; one'],
    ['- one', '&#45; one'],
    ['a_b _c_', 'a_b &#95;c&#95;'],
    [':100:', '&#58;100:'],
  ])('takes the meaning from %s', (text, markdown) => {
    expect(inline(text)).toBe(markdown)
  })

  it('leaves ordinary words alone', () => {
    expect(inline('BUILD_FAILED after 3 min (exit code 1), see build-log.txt')).toBe(
      'BUILD_FAILED after 3 min (exit code 1), see build-log.txt',
    )
  })
})

describe('prose', () => {
  it('makes code of what stands between backticks, and keeps the words around it apart', () => {
    expect(prose('Raise `timeout`, or check `api-key` and `a_b <c>`.')).toBe(
      'Raise <code>timeout</code>, or check <code>api-key</code> and <code>a_b &#60;c&#62;</code>.',
    )
    expect(prose('one ` alone')).toBe('one &#96; alone')
  })

  it('leaves nothing else that Markdown or HTML could read', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const rest = prose(text)
          .replace(/<code>|<\/code>/g, '')
          .replace(/&#\d+;/g, ',')
        expect(rest).not.toMatch(/[<>`|[\]*#&\n\r@\\~$!{}"^]/)
      }),
    )
  })
})

describe('html, code and block', () => {
  it('close no element and open none', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(html(text)).not.toMatch(/[<>"'\n]/)
        expect(code(text).slice('<code>'.length, -'</code>'.length)).not.toMatch(/[<>`|]/)
        expect(block([text, text]).slice('<pre>'.length, -'</pre>'.length)).not.toMatch(/[<>]/)
      }),
    )
  })
})

describe('link', () => {
  it('links http and https only, and only what is an address', () => {
    expect(link('x', 'https://a.example.com/?a="><script>')).toBe('<a href="https://a.example.com/?a=%22%3E%3Cscript%3E">x</a>')
    expect(link('x', 'javascript:alert(1)')).toBe('x')
    expect(link('x', 'file:///etc/passwd')).toBe('x')
    expect(link('x', 'git@github.com:acme/agents')).toBe('x')
  })
})

describe('clipBytes', () => {
  it('keeps whole characters within the bound', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 50 }).filter((text) => !text.includes('\ufffd')),
        fc.integer({ min: 80, max: 200 }),
        (text, max) => {
          const clipped = clipBytes(text, max)
          expect(Buffer.byteLength(clipped)).toBeLessThanOrEqual(Math.max(max, 0))
          expect(clipped).not.toContain('\ufffd')
          if (Buffer.byteLength(text) <= max) expect(clipped).toBe(text)
        },
      ),
    )
  })
})
