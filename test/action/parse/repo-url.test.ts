import { describe, expect, it } from 'vitest'
import { parseRepoUrl, sameRepoUrl } from '../../../src/action/parse/repo-url.ts'

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
