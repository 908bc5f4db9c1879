import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normaliseRepoUrl, parseRepoUrl, sameRepoUrl } from '../../../src/action/parse/repo-url.ts'

describe('parseRepoUrl', () => {
  it.each([
    'https://github.com/acme/agents',
    'ssh://git@host.example.com:22/acme/agents.git',
    'git@github.com:acme/agents.git',
    'file:///srv/agents.git',
    'http://127.0.0.1:3000/agents',
  ])('accepts %s', (text) => {
    expect(parseRepoUrl(text)).toEqual({ value: text })
  })

  it.each([
    'acme/agents',
    'https://token@github.com/acme/agents',
    'https://u:p@github.com/acme/agents',
    'ssh://git:pw@host/x',
    'https://github.com/a b',
    'https://github.com/a?x',
    '-u',
    `https://e.example.com/${'a'.repeat(2048)}`,
  ])('refuses %s', (text) => {
    expect(parseRepoUrl(text)).toHaveProperty('problem')
  })
})

describe('sameRepoUrl', () => {
  it.each([
    ['https://GitHub.com/acme/agents', 'https://github.com/acme/agents.git'],
    ['https://github.com/Acme/Agents/', 'https://github.com/acme/agents'],
    ['https://git.example.com:443/a/b.git/', 'https://git.example.com/a/b'],
    ['git@host:acme/agents.git', 'git@host:acme/agents'],
  ])('%s is %s', (a, b) => {
    expect(sameRepoUrl(a, b)).toBe(true)
  })

  it.each([
    ['https://git.example.com/Acme/agents', 'https://git.example.com/acme/agents'],
    ['https://github.com/acme/agents', 'https://github.com/acme/agent'],
    ['https://github.com/acme/agents', 'http://github.com/acme/agents'],
    ['https://github.com:8443/acme/agents', 'https://github.com/acme/agents'],
  ])('%s is not %s', (a, b) => {
    expect(sameRepoUrl(a, b)).toBe(false)
  })
})

describe('any address', () => {
  const word = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9-]{0,8}$/)
  const address = fc
    .record({
      scheme: fc.constantFrom('https://', 'http://', 'ssh://', 'git://', 'file://'),
      user: fc.constantFrom('', 'git@', 'token@', 'u:p@', ':p@'),
      host: fc.constantFrom('github.com', 'GitHub.com', 'git.example.com:8443', '127.0.0.1', '[::1]:22'),
      path: fc.array(word, { minLength: 1, maxLength: 3 }),
      end: fc.constantFrom('', '.git', '/', '.git/', '?a=b', '#c', ' ', '\n'),
    })
    .map(({ scheme, user, host, path, end }) => `${scheme}${user}${host}/${path.join('/')}${end}`)

  it('that is taken carries no credentials, query, fragment or white space', () => {
    fc.assert(
      fc.property(fc.oneof(address, fc.string()), (text) => {
        const parsed = parseRepoUrl(text)
        if (!('value' in parsed)) return
        expect(parsed.value).toBe(text)
        expect(text).not.toMatch(/[\s\0]|\/\/[^/]*:[^/@]*@|^https?:\/\/[^/]*@|^\w+:\/\/[^@]*[?#][^?#]/)
      }),
      { numRuns: 300 },
    )
  })

  it('has one spelling, which is its own; the same one with .git or a slash at its end', () => {
    fc.assert(
      fc.property(
        address.filter((text) => 'value' in parseRepoUrl(text)),
        (text) => {
          const normal = normaliseRepoUrl(text)
          expect(normaliseRepoUrl(normal)).toBe(normal)
          expect(sameRepoUrl(text, normal)).toBe(true)
          expect(sameRepoUrl(`${normal}.git`, `${normal}/`)).toBe(true)
          expect(sameRepoUrl(text, `${normal}x`)).toBe(false)
        },
      ),
    )
  })
})
