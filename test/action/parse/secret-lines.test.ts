import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSecretLines } from '../../../src/action/parse/secret-lines.ts'
import { RESERVED_SECRET_NAMES } from '../../../src/contract/secret.ts'

describe('parseSecretLines', () => {
  it('takes each value literally', () => {
    const { secrets, problems } = parseSecretLines('A=1\n  B = two words \nC="quoted"\r\nD=x=y#z\n\n# a comment\n')
    expect(problems).toEqual([])
    expect(secrets).toEqual([
      { name: 'A', value: '1' },
      { name: 'B', value: ' two words ' },
      { name: 'C', value: '"quoted"' },
      { name: 'D', value: 'x=y#z' },
    ])
  })

  it('ends a value at the end of its line, and nowhere before', () => {
    expect(parseSecretLines('A=x\ry\nB=x\u2028y')).toMatchObject({
      problems: [],
      secrets: [
        { name: 'A', value: 'x\ry' },
        { name: 'B', value: 'x\u2028y' },
      ],
    })
  })

  it('reads a value of several lines, whatever stands in it', () => {
    const { secrets, problems } = parseSecretLines('KEY<<END\n-----BEGIN-----\nA=B\n# no comment\n\nEND\nB=2')
    expect(problems).toEqual([])
    expect(secrets).toEqual([
      { name: 'KEY', value: '-----BEGIN-----\nA=B\n# no comment\n' },
      { name: 'B', value: '2' },
    ])
  })

  it.each([
    ['no sign at all', 'line 1'],
    ['1A=x', 'line 1'],
    ['A-B=x', 'line 1'],
    ['A=fine\n=x', 'line 2'],
    ['A<<\nx', 'line 1'],
    ['A<<END\nx', 'no end line'],
    ['A=', 'A has no value'],
    ['A=   ', 'A has no value'],
    ['A=x\nA=y', 'line 2: A is there already, in line 1'],
    ['POSTGRES_URI=x', 'reserved'],
    [`A=${'x'.repeat(65_537)}`, 'too long'],
    [`${'A'.repeat(256)}=x`, 'too long'],
    ['A=x\0y', 'NUL'],
    [Array.from({ length: 501 }, (_, index) => `A${index}=x`).join('\n'), '500'],
  ])('refuses %j', (text, says) => {
    expect(parseSecretLines(text).problems.join('; ')).toContain(says)
  })

  it('never says a text that it did not understand, and gives it for masking', () => {
    const { problems, sensitive } = parseSecretLines('OK=fine-value\nrest-of-a-private-key')
    expect(problems.join()).not.toContain('private')
    expect(sensitive).toEqual(['fine-value', 'rest-of-a-private-key'])
  })

  it('takes the end of a key in base64 for no name', () => {
    const { problems, sensitive } = parseSecretLines('KEY=first-line\nQx7Wz9aB=')
    expect(problems).toEqual(['line 2: the variable has no value (a secret that does not exist in this repository is an empty text)'])
    expect(sensitive).toEqual(['first-line', '', 'Qx7Wz9aB'])
  })

  const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,20}$/).filter((text) => !RESERVED_SECRET_NAMES.has(text))
  const value = fc.string({ minLength: 1 }).filter((text) => !/[\0\r\n]/.test(text) && text.trim() !== '')

  it('gives back what was written, line by line', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.record({ name, value }), { selector: (secret) => secret.name, maxLength: 20 }), (secrets) => {
        const text = secrets.map((secret) => `${secret.name}=${secret.value}`).join('\n')
        expect(parseSecretLines(text)).toEqual({ secrets, problems: [], sensitive: secrets.map((secret) => secret.value) })
      }),
    )
  })

  it('never throws, names only lines, and misses no value in what it gives for masking', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('A', '=', '<', '\n', '\r', ' ', '#', 'x', '9') }), (text) => {
        const { secrets, problems, sensitive } = parseSecretLines(text)
        for (const secret of secrets) expect(sensitive).toContain(secret.value)
        for (const problem of problems) expect(problem).toMatch(/^(line \d+|there are)/)
      }),
    )
  })
})
