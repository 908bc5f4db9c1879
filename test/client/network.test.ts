import { spawnSync } from 'node:child_process'
import { createServer as createSecureServer } from 'node:https'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { makeCertificates, type Certificates } from './support/certificates.ts'
import { startConnectProxy, type ConnectProxy } from './support/connect-proxy.ts'
import { requestFromChild } from './support/run-child.ts'
import { serve } from './support/serve.ts'

/** A socket that is left open would hold the process until it is killed, after 9 s. */
const LINGER_MAX_MS = 3000

async function proxyTo(way: Parameters<typeof startConnectProxy>[0]): Promise<ConnectProxy> {
  const proxy = await startConnectProxy(way)
  onTestFinished(proxy.stop)
  return proxy
}

async function service(): Promise<{ port: number; keys: unknown[] }> {
  const keys: unknown[] = []
  const server = await serve((request, response) => {
    keys.push(request.headers['x-api-key'])
    response.end(JSON.stringify({ path: request.url, host: request.headers.host }))
  })
  return { port: server.port, keys }
}

describe('a proxy', () => {
  it('is used for an address that is not on this machine', async () => {
    const { port, keys } = await service()
    const proxy = await proxyTo(() => ({ port }))
    const result = await requestFromChild({ baseUrl: 'http://control-plane.test/api-host' }, { HTTP_PROXY: proxy.url })
    expect(result).toMatchObject({ body: { path: '/api-host/v2/x', host: 'control-plane.test' }, code: 0 })
    expect(proxy.asked).toEqual([{ target: 'control-plane.test:80', authorization: undefined }])
    expect(keys).toEqual(['the-key-of-the-child'])
    expect(result.lingeredMs).toBeLessThan(LINGER_MAX_MS)
  })

  it('gets its own name and password, and only those', async () => {
    const { port } = await service()
    const proxy = await proxyTo(() => ({ port }))
    const address = proxy.url.replace('http://', 'http://user:pass%20word@')
    await requestFromChild({ baseUrl: 'http://control-plane.test' }, { http_proxy: address })
    expect(proxy.asked[0]?.authorization).toBe(`Basic ${Buffer.from('user:pass word').toString('base64')}`)
  })

  it('is left out for NO_PROXY and for this machine', async () => {
    const { port } = await service()
    const proxy = await proxyTo(() => ({ port }))
    const local = await requestFromChild({ baseUrl: `http://127.0.0.1:${port}` }, { HTTP_PROXY: proxy.url })
    expect(local.body).toMatchObject({ path: '/v2/x' })
    const excluded = await requestFromChild({ baseUrl: 'http://cp.invalid' }, { HTTP_PROXY: proxy.url, NO_PROXY: '.invalid' })
    expect(excluded.failure?.code).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
    expect(proxy.asked).toEqual([])
  })

  it('that refuses means that nothing was sent', async () => {
    const proxy = await proxyTo(() => 407)
    const { failure } = await requestFromChild({ baseUrl: 'http://control-plane.test', attempts: 2 }, { HTTP_PROXY: proxy.url })
    expect(failure).toMatchObject({
      kind: 'network',
      ambiguous: false,
      attempts: 2,
      message:
        'GET /v2/x could not reach control-plane.test (tried 2 times): tunneling socket could not be established, statusCode=407',
    })
  })

  it('that is not there means that nothing was sent', async () => {
    const proxy = await proxyTo(() => null)
    await proxy.stop()
    const { failure } = await requestFromChild({ baseUrl: 'http://control-plane.test' }, { HTTP_PROXY: proxy.url })
    expect(failure).toMatchObject({ kind: 'network', ambiguous: false })
    expect(failure?.detail).toContain('ECONNREFUSED')
  })

  it.each([
    ['the timeout', { timeoutMs: 1000 }, 'network'],
    ['cancellation', { cancelAfterMs: 1000 }, 'cancelled'],
  ])('that is silent holds neither the request nor the process after %s', async (_what, settings, kind) => {
    const proxy = await proxyTo(() => null)
    const result = await requestFromChild({ baseUrl: 'http://control-plane.test', ...settings }, { HTTP_PROXY: proxy.url })
    expect(result).toMatchObject({ failure: { kind }, code: 0 })
    expect(proxy.asked).toHaveLength(1)
    expect(result.lingeredMs).toBeLessThan(LINGER_MAX_MS)
  })

  it('to a service that is silent holds neither', async () => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => sockets.push(socket))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => silent.close(resolve))
    })
    const proxy = await proxyTo(() => ({ port: (silent.address() as AddressInfo).port }))
    for (const baseUrl of ['http://control-plane.test', 'https://control-plane.test']) {
      const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url }
      const result = await requestFromChild({ baseUrl, timeoutMs: 1000 }, env)
      expect(result).toMatchObject({ failure: { kind: 'network', code: 'timeout' }, code: 0 })
      expect(result.lingeredMs).toBeLessThan(LINGER_MAX_MS)
    }
  })
})

describe('the process', () => {
  it.each([
    ['a silent service', { timeoutMs: 1000 }, 'network'],
    ['a cancelled request', { cancelAfterMs: 1000 }, 'cancelled'],
  ])('ends by itself after %s', async (_what, settings, kind) => {
    const server = await serve(() => undefined)
    const result = await requestFromChild({ baseUrl: server.url, ...settings })
    expect(result).toMatchObject({ failure: { kind }, code: 0 })
    expect(result.lingeredMs).toBeLessThan(LINGER_MAX_MS)
  })
})

const OPENSSL = hasOpenssl()

describe('a certificate authority of your own', () => {
  let certificates: Certificates
  let port: number
  const server = { stop: async () => undefined as unknown }

  beforeAll(async () => {
    if (!OPENSSL) return
    certificates = makeCertificates()
    const secure = createSecureServer({ key: certificates.key, cert: certificates.certificate }, (request, response) => {
      response.end(JSON.stringify({ path: request.url }))
    })
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
    port = (secure.address() as AddressInfo).port
    server.stop = () => new Promise((resolve) => secure.close(resolve))
  })
  beforeEach((context) => {
    if (!OPENSSL) context.skip('there is no openssl')
  })
  afterAll(async () => {
    await server.stop()
    if (OPENSSL) certificates.remove()
  })

  it('is trusted when NODE_EXTRA_CA_CERTS names it', async () => {
    const result = await requestFromChild({ baseUrl: `https://127.0.0.1:${port}` }, { NODE_EXTRA_CA_CERTS: certificates.caFile })
    expect(result).toMatchObject({ body: { path: '/v2/x' }, code: 0 })
  })

  it('is trusted through a proxy, too', async () => {
    const proxy = await proxyTo(() => ({ port }))
    const env = { NODE_EXTRA_CA_CERTS: certificates.caFile, HTTPS_PROXY: proxy.url }
    const result = await requestFromChild({ baseUrl: 'https://control-plane.test' }, env)
    expect(result).toMatchObject({ body: { path: '/v2/x' }, code: 0 })
    expect(proxy.asked).toEqual([{ target: 'control-plane.test:443', authorization: undefined }])
    expect(result.lingeredMs).toBeLessThan(LINGER_MAX_MS)
  })

  it('is not trusted otherwise, and asking again does not help', async () => {
    const { failure } = await requestFromChild({ baseUrl: `https://127.0.0.1:${port}`, attempts: 5 })
    expect(failure).toMatchObject({ kind: 'network', attempts: 1, ambiguous: false, code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
  })

  it('does not vouch for another host', async () => {
    const proxy = await proxyTo(() => ({ port }))
    const env = { NODE_EXTRA_CA_CERTS: certificates.caFile, HTTPS_PROXY: proxy.url }
    const { failure } = await requestFromChild({ baseUrl: 'https://other.test', attempts: 5 }, env)
    expect(failure).toMatchObject({ kind: 'network', attempts: 1, ambiguous: false, code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  })
})

function hasOpenssl(): boolean {
  return spawnSync('openssl', ['version'], { stdio: 'ignore' }).status === 0
}
