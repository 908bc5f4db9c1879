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
  it('leaves out what could be secret', () => {
    expect(showAddress('https://user:hunter2@a.example.com/x?key=hunter3#y')).toBe('https://***@a.example.com/x?***')
  })
})
