import { describe, expect, it } from 'vitest'
import { parseEndpoint } from '../../../src/action/export/parse.ts'
import { parseAddress, showAddress } from '../../../src/action/parse/address.ts'

describe('parseAddress', () => {
  it.each([
    ['https://api.host.example.com', 'https://api.host.example.com'],
    ['https://corp.example.com/langsmith/api-host/', 'https://corp.example.com/langsmith/api-host'],
    ['HTTPS://Corp.Example.com:8443', 'https://corp.example.com:8443'],
    ['http://localhost:8787', 'http://localhost:8787'],
    ['http://127.0.0.1:8787/', 'http://127.0.0.1:8787'],
    ['http://[::1]:8787', 'http://[::1]:8787'],
  ])('reads %s without a warning', (text, url) => {
    expect(parseAddress(text)).toEqual({ value: { url } })
  })

  it('warns about plain http to another host, and does not refuse it', () => {
    expect(parseAddress('http://platform.internal:8787')).toEqual({
      value: { url: 'http://platform.internal:8787', warning: expect.stringContaining('platform.internal:8787') },
    })
  })

  it.each([
    '',
    'api.example.com',
    'ftp://a.example.com',
    'https://u:p@a.example.com',
    'https://u@a.example.com',
    'https://a.example.com?x=1',
    'https://a.example.com#x',
    'https://a.example.com/v2',
    'https://a.example.com/x/v2/deployments/',
  ])('refuses %j', (text) => {
    expect(parseAddress(text)).toHaveProperty('problem')
  })
})

describe('an address without a scheme', () => {
  it.each([
    ['api.example.com', 'write https://api.example.com'],
    ['api.example.com:8443/api-host', 'write https://api.example.com:8443/api-host'],
    ['127.example.com', 'write https://127.example.com'],
    ['127.0.0.1:8787', 'write http://127.0.0.1:8787'],
    ['127.1.2.3/api-host', 'write http://127.1.2.3/api-host'],
    ['localhost', 'write http://localhost'],
    ['localhost:8787', 'write http://localhost:8787'],
    ['[::1]:8787', 'write http://[::1]:8787'],
  ])('%s gets the one that fits its host', (text, fix) => {
    expect(parseAddress(text)).toEqual({ problem: 'is not an address', fix })
    expect(parseEndpoint(text)).toEqual({ problem: 'is not an address', fix })
  })

  it.each(['not an address', 'https://', 'javascript:alert(1)', 'user:hunter2@a.example.com', 'user@a.example.com'])(
    '%s gets no advice that does not help',
    (text) => {
      expect(parseAddress(text)).toEqual({ problem: 'is not an address' })
      expect(parseEndpoint(text)).toEqual({ problem: 'is not an address' })
    },
  )

  it('is told from one of another scheme', () => {
    expect(parseAddress('ftp://a.example.com')).toEqual({ problem: 'is neither https nor http' })
    expect(parseEndpoint('s3://a.example.com')).toEqual({ problem: 'is neither https nor http' })
  })
})

describe('showAddress', () => {
  it.each([
    ['https://user:hunter2@a.example.com/x?key=hunter3#y', 'https://***@a.example.com/x?***'],
    ['deploy:hunter2@a.example.com/x?key=hunter3', '***@a.example.com/x?***'],
    ['user:hunter2@proxy:3128', '***@proxy:3128'],
    ['user:31281@proxy:3128', '***@proxy:3128'],
    ['me@corp.example.com:hunter2@proxy:3128', '***@proxy:3128'],
    ['user:hunter2@hunter3@proxy:3128/x@y', '***@proxy:3128/x@y'],
    ['user:hunter2/hunter3@proxy:3128', '***@proxy:3128'],
    ['user:hunter2//hunter3@proxy:3128', '***@proxy:3128'],
    ['https://user:hunter2/hunter3@a.example.com', 'https://***@a.example.com'],
    ['https://user:hunter2?hunter3#hunter4@a.example.com?hunter5', 'https://***@a.example.com?***'],
    ['git:hunter2@github.com:acme/agents.git', '***@github.com:acme/agents.git'],
    ['hunter2@github.com/acme/agents', '***@github.com/acme/agents'],
    ['//hunter2@github.com/acme/agents', '//***@github.com/acme/agents'],
    ['https:user:hunter2@a.example.com', 'https:***@a.example.com'],
    ['HTTP:\\\\user:hunter2@a.example.com', 'HTTP:\\\\***@a.example.com'],
    ['https:///user:hunter2@a.example.com', 'https:///***@a.example.com'],
    ['write https://user:hunter2@a.example.com', 'write https://***@a.example.com'],
    ['user:hunter2@[::1]:3128', '***@[::1]:3128'],
    ['user:hunter2@registry.example.com/agents:v1@sha256:0123', '***@registry.example.com/agents:v1@sha256:0123'],
    ['user:hunter2/x@registry.example.com/agents:v1@sha256:0123', '***@registry.example.com/agents:v1@sha256:0123'],
  ])('leaves out what could be secret in %s', (text, shown) => {
    expect(showAddress(text)).toBe(shown)
  })

  it.each([
    'git@github.com:acme/agents.git',
    'deployer@host.example.com:2222/acme/agents',
    'git@github.com:acme/agents@next:1',
    'acme/agents@v1',
    'localhost:8787',
    'localhost:8787/a:b@c',
    'a.example.com/a:b@c',
    'a.example.com//a:b@c',
    'https://a.example.com/a:b@c',
    'https://a.example.com//a:b@c',
    'https://a.example.com:8443/a:b@c',
    'https://a.example.com:/a:b@c',
    'https://[::1]:8443/a:b@c',
    '[::1]:8443/a:b@c',
    'file:///tmp/a:b@c',
    'agents@sha256:0123',
    'agents:v1@sha256:0123',
    'localhost:5000/agents:v1@sha256:0123',
  ])('shows %s as it is', (text) => {
    expect(showAddress(text)).toBe(text)
  })

  it.each([
    ['https://a.example.com?a:b@c', 'https://a.example.com?***'],
    ['a.example.com:8443#a:b@c', 'a.example.com:8443?***'],
  ])('takes no query or fragment for a user: %s', (text, shown) => {
    expect(showAddress(text)).toBe(shown)
  })
})
