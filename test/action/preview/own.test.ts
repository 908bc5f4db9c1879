import { describe, expect, it } from 'vitest'
import { isSameRepository } from '../../../src/action/preview/own.ts'

const OWN = 'https://github.com/acme/agents'

describe('isSameRepository', () => {
  it.each([
    OWN,
    'https://github.com/acme/agents.git',
    'https://github.com/Acme/Agents/',
    'https://GitHub.com/acme/agents',
    'git@github.com:acme/agents.git',
    'git@github.com:acme/agents',
    'ssh://git@github.com/acme/agents.git',
    'ssh://git@github.com:22/acme/agents',
    'https://github.com//acme/agents',
  ])('takes %s for this repository', (address) => {
    expect(isSameRepository(OWN, address)).toBe(true)
    expect(isSameRepository(address, OWN)).toBe(true)
  })

  it.each([
    'https://github.com/acme/agents2',
    'https://github.com/acme/agents/../other',
    'https://github.com/acme',
    'https://github.com/mallory/agents',
    'https://github.com.evil.example/acme/agents',
    'https://evil.example/github.com/acme/agents',
    'git@gitlab.com:acme/agents.git',
    'https://github.com:8443/acme/agents',
    'git@github.com:acme/agents/x',
    '/srv/acme/agents',
    'file:///acme/agents',
    '',
  ])('takes %s for another one', (address) => {
    expect(isSameRepository(OWN, address)).toBe(false)
    expect(isSameRepository(address, OWN)).toBe(false)
  })

  it.each([
    ['ssh://git@github.com/acme/agents', true],
    ['ssh://git@github.com/Acme/Agents.git', true],
    ['ssh://git@github.com:22/acme/agents', true],
    ['ssh://git@github.com:2222/acme/agents', false],
    ['git@github.com:acme/other', false],
    ['git@github.com:acme/agents\nother', false],
  ])('compares two addresses over ssh: %j', (address, expected) => {
    expect(isSameRepository('git@github.com:acme/agents', address)).toBe(expected)
    expect(isSameRepository(address, 'git@github.com:acme/agents')).toBe(expected)
  })

  it('compares what is no address of a host as it is', () => {
    expect(isSameRepository('/srv/agents', '/srv/agents/')).toBe(true)
    expect(isSameRepository('http://127.0.0.1:3000/acme/agents', 'http://127.0.0.1:3001/acme/agents')).toBe(false)
  })
})
