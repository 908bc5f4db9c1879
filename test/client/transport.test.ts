import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startDeadline } from '../../src/client/deadline.ts'
import type { RetryEvent } from '../../src/client/retry.ts'
import { API_KEY, failureOf, testTransport, unaborted } from './support/fixtures.ts'
import { allowOnlyMocks, HOST } from './support/mocks.ts'
import { virtualEffects } from './support/virtual-effects.ts'

allowOnlyMocks()

describe('a request', () => {
  it('carries the headers, the query and the body, and gives what came back', async () => {
    nock(HOST, {
      reqheaders: {
        'x-api-key': API_KEY,
        'x-tenant-id': 'workspace-1',
        accept: 'application/json',
        'content-type': 'application/json',
        'user-agent': 'deploy-agent-server/test',
      },
    })
      .post('/v2/things', { name: 'é' })
      .query({ limit: '5', flag: 'false', text: 'a b&c' })
      .reply(201, { ok: true }, { 'X-Request-Id': 'req-1' })
    const answer = await testTransport({ baseUrl: HOST }).request({
      method: 'POST',
      path: '/v2/things',
      query: { limit: 5, flag: false, text: 'a b&c', absent: undefined, nothing: null },
      body: { name: 'é' },
      signal: unaborted(),
    })
    expect(answer).toMatchObject({ status: 201, body: { ok: true }, attempts: 1, requestId: 'req-1' })
    expect(answer.headers['content-type']).toBe('application/json')
  })

  it('has no body and no content type when there is nothing to send', async () => {
    nock(HOST, { badheaders: ['content-type'] })
      .get('/x')
      .reply(200, {})
    expect(
      (await testTransport({ baseUrl: HOST }).request({ method: 'GET', path: '/x', signal: unaborted() })).requestId,
    ).toBeNull()
  })

  it.each([
    ['https://corp.test/api-host', '/api-host/v2/x'],
    ['https://corp.test/langsmith/api-host//', '/langsmith/api-host/v2/x'],
    ['https://corp.test', '/v2/x'],
    ['https://corp.test/', '/v2/x'],
    ['http://corp.test:8080/a%20b', '/a%20b/v2/x'],
  ])('keeps the path of the address %s', async (baseUrl, path) => {
    nock(new URL(baseUrl).origin).get(path).reply(200, { path })
    const answer = await testTransport({ baseUrl }).request({ method: 'GET', path: '/v2/x', signal: unaborted() })
    expect(answer.body).toEqual({ path })
  })

  it.each([
    ['https://corp.test/api-host/', 'https://corp.test/api-host'],
    ['http://corp.test:8080', 'http://corp.test:8080'],
  ])('that is refused tells the address %s, and not what was asked there', async (baseUrl, address) => {
    const path = `${new URL(baseUrl).pathname.replace(/\/$/, '')}/v2/x`
    nock(new URL(baseUrl).origin).get(path).query({ limit: 5 }).reply(401, {}).post(path).reply(401, {})
    const transport = testTransport({ baseUrl })
    const refused = transport.request({ method: 'GET', path: '/v2/x', query: { limit: 5 }, signal: unaborted() })
    expect(await failureOf(refused)).toMatchObject({ status: 401, address })
    const streamed = transport.stream({ method: 'POST', path: '/v2/x', signal: unaborted() }).next()
    expect(await failureOf(streamed)).toMatchObject({ status: 401, address })
  })

  it('gives null for a 204, and for an empty body where that is allowed', async () => {
    nock(HOST).delete('/x').reply(204).post('/x').reply(202, '')
    const transport = testTransport({ baseUrl: HOST })
    expect((await transport.request({ method: 'DELETE', path: '/x', signal: unaborted() })).body).toBeNull()
    const posted = await transport.request({ method: 'POST', path: '/x', emptyAllowed: true, signal: unaborted() })
    expect(posted).toMatchObject({ status: 202, body: null })
  })

  it('reads the body with its schema', async () => {
    nock(HOST).get('/x').reply(200, { id: 'a', more: 1 })
    const schema = z.object({ id: z.string() })
    const { body } = await testTransport({ baseUrl: HOST }).request({ method: 'GET', path: '/x', schema, signal: unaborted() })
    expect(body).toEqual({ id: 'a' })
  })
})

describe('a transport', () => {
  it.each([
    ['ftp://host', 'should begin with https:// or http://'],
    ['host', 'should begin with https:// or http://'],
    ['git+https://host', 'should begin with https:// or http://'],
    ['https+unix://host', 'should begin with https:// or http://'],
    ['https://pass-word@host', 'the address of host should not carry a password'],
    ['https://:pass-word@host', 'the address of host should not carry a password'],
    ['https://user:pass-word@host', 'the address of host should not carry a password'],
    ['https://host?x=1', "should end before '?' and '#'"],
    ['https://host/#x', "should end before '?' and '#'"],
  ])('refuses the address %s', (baseUrl, message) => {
    expect(() => testTransport({ baseUrl })).toThrow(message)
    expect(() => testTransport({ baseUrl })).not.toThrow('pass-word')
  })

  it('tells its address without slashes at the end', () => {
    expect(testTransport({ baseUrl: 'https://corp.test/langsmith/api-host//' }).baseUrl).toBe(
      'https://corp.test/langsmith/api-host',
    )
  })

  it('refuses a header that could not be sent, without its value', () => {
    const create = () => testTransport({ baseUrl: HOST, headers: { 'X-Api-Key': 'my-key\n' } })
    expect(create).toThrow('the value of the header X-Api-Key has a character that no header can carry')
    expect(create).not.toThrow('my-key')
  })
})

describe('an answer', () => {
  const get = (options: object = {}) =>
    testTransport({ baseUrl: HOST }).request({ method: 'GET', path: '/x', signal: unaborted(), ...options })

  it('of a 200 without a body is none, unless that is allowed', async () => {
    nock(HOST).get('/x').times(3).reply(200, '')
    expect(await failureOf(get())).toMatchObject({ kind: 'protocol', code: 'empty', summary: 'answered 200 with an empty body' })
    nock(HOST).get('/x').reply(200, '')
    expect((await get({ emptyAllowed: true })).body).toBeNull()
  })

  it('of another shape names five of its faults', async () => {
    nock(HOST).get('/x').times(3).reply(200, {})
    const text = z.string()
    const schema = z.object({ a: text, b: text, c: text, d: text, e: text, f: text, g: text })
    const { detail } = await failureOf(get({ schema }))
    expect(detail?.split('; ').map((fault) => fault.slice(0, 3))).toEqual(['a: ', 'b: ', 'c: ', 'd: ', 'e: '])
  })
})

describe('a refusal', () => {
  const refused = async (status: number, body: nock.Body, headers: Record<string, string> = {}) => {
    nock(HOST).post('/v2/deployments').reply(status, body, headers)
    const transport = testTransport({ baseUrl: HOST, redact: (text) => text.replaceAll('hush-hush', '***') })
    const body_ = { secrets: [{ name: 'TOKEN', value: 'line one\n"two"' }] }
    return await failureOf(transport.request({ method: 'POST', path: '/v2/deployments', body: body_, signal: unaborted() }))
  }

  it.each([
    [400, { detail: 'a sentence' }, 'answered 400 Bad Request: a sentence'],
    [401, { message: 'who are you' }, 'answered 401 Unauthorized: who are you'],
    [403, { error: 'Forbidden' }, 'answered 403 Forbidden: Forbidden'],
    [404, { error: { message: 'nested' } }, 'answered 404 Not Found: nested'],
    [409, 'just "text"', 'answered 409 Conflict'],
    [409, JSON.stringify('a bare string'), 'answered 409 Conflict: a bare string'],
    [418, {}, "answered 418 I'm a Teapot"],
    [499, '', 'answered 499'],
  ])('%i says what the service says: %j', async (status, body, message) => {
    const failure = await refused(status, body)
    expect(failure.message).toBe(`POST /v2/deployments ${message}`)
    expect(failure).toMatchObject({
      kind: 'http',
      status,
      method: 'POST',
      path: '/v2/deployments',
      attempts: 1,
      ambiguous: false,
    })
  })

  it('422 shows each fault with its place', async () => {
    const failure = await refused(
      422,
      {
        detail: [
          { loc: ['body', 'source_revision_config', 'repo_ref'], msg: 'should be a branch', type: 'value_error', input: 'hush' },
          { loc: ['body', 'secrets', 0, 'name'], msg: 'is\nreserved', type: 'value_error' },
        ],
      },
      { 'x-request-id': 'req-9' },
    )
    expect(failure.detail).toBe('body.source_revision_config.repo_ref: should be a branch\nbody.secrets.0.name: is reserved')
    expect(failure.message).toBe(`POST /v2/deployments answered 422 Unprocessable Entity:\n${failure.detail}`)
    expect(failure.requestId).toBe('req-9')
  })

  it('never shows the key, the secrets that were sent, or what the caller hides', async () => {
    const failure = await refused(400, {
      detail: `hush-hush ${API_KEY} line one\n"two" is bad`,
      input: { secrets: [{ name: 'TOKEN', value: 'line one\n"two"' }], other: [{ name: 'X', value: 'old' }] },
    })
    const everything = JSON.stringify({ ...failure, message: failure.message, stack: failure.stack })
    for (const secret of [API_KEY, 'line one', 'two', 'hush-hush', 'old']) expect(everything).not.toContain(secret)
    expect(failure.detail).toBe('*** *** *** is bad')
    expect(failure.excerpt).toContain('"name":"TOKEN","value":"***"')
  })

  it('is ambiguous when a server error may have come after the work was done', async () => {
    expect((await refused(500, {})).ambiguous).toBe(true)
    expect((await refused(504, '<html>')).ambiguous).toBe(true)
    expect((await refused(408, {})).ambiguous).toBe(true)
    expect((await refused(501, {})).ambiguous).toBe(false)
  })
})

describe('redirects', () => {
  it.each([
    ['https://elsewhere.test/login?next=1', 'answered 302 Found and points to elsewhere.test; redirects are not followed'],
    ['/v2/x/', 'answered 302 Found and points to control-plane.test (/v2/x/); redirects are not followed'],
    ['http://[broken', 'answered 302 Found; redirects are not followed'],
  ])('to %s are refused with the way out', async (location, words) => {
    nock(HOST).get('/v2/x').reply(302, '', { location })
    const elsewhere = nock('https://elsewhere.test').get(/.*/).reply(200, {})
    const failure = await failureOf(
      testTransport({ baseUrl: HOST }).request({ method: 'GET', path: '/v2/x', signal: unaborted() }),
    )
    expect(failure.message).toContain(words)
    expect(failure.message).toContain('fix the address control-plane.test')
    expect(failure).toMatchObject({ kind: 'http', status: 302, attempts: 1, ambiguous: false })
    expect(elsewhere.isDone()).toBe(false)
    nock.cleanAll()
  })

  it('without a Location are refused, too', async () => {
    nock(HOST).get('/v2/x').reply(304)
    const failure = await failureOf(
      testTransport({ baseUrl: HOST }).request({ method: 'GET', path: '/v2/x', signal: unaborted() }),
    )
    expect(failure.message).toContain('answered 304 Not Modified; redirects are not followed')
  })
})

describe('repetition', () => {
  it('waits as the service asks, counts rate limits, and reports each wait', async () => {
    const effects = virtualEffects()
    const events: RetryEvent[] = []
    nock(HOST)
      .get('/x')
      .reply(429, { detail: 'slow down' }, { 'retry-after': '40' })
      .get('/x')
      .reply(503, '', { 'retry-after': new Date(effects.now() + 47_000).toUTCString() })
      .get('/x')
      .reply(429, {})
      .get('/x')
      .reply(200, { ok: 1 })
    const transport = testTransport({ baseUrl: HOST, effects, onRetry: (event) => events.push(event) })
    const answer = await transport.request({ method: 'GET', path: '/x', signal: unaborted() })
    expect(answer).toMatchObject({ body: { ok: 1 }, attempts: 4 })
    expect(effects.sleeps).toEqual([40_000, 7000, 2000])
    expect(transport.waitedForRateLimitMs()).toBe(42_000)
    expect(events.map(({ reason, waitMs, attempt }) => [attempt, waitMs, reason])).toEqual([
      [1, 40_000, 'answered 429 Too Many Requests'],
      [2, 7000, 'answered 503 Service Unavailable'],
      [3, 2000, 'answered 429 Too Many Requests'],
    ])
  })

  it('does not repeat a write after a server error', async () => {
    nock(HOST).patch('/x').reply(503)
    const failure = await failureOf(
      testTransport({ baseUrl: HOST }).request({ method: 'PATCH', path: '/x', body: {}, signal: unaborted() }),
    )
    expect(failure).toMatchObject({ attempts: 1, ambiguous: true })
  })

  it('repeats a write after a 429', async () => {
    nock(HOST).post('/x').reply(429).post('/x').reply(200, {})
    expect(
      (await testTransport({ baseUrl: HOST }).request({ method: 'POST', path: '/x', body: {}, signal: unaborted() })).attempts,
    ).toBe(2)
  })

  it('repeats DELETE, and a POST that only reads', async () => {
    nock(HOST).delete('/x').reply(502).delete('/x').reply(204).post('/x').reply(502).post('/x').reply(200, {})
    const transport = testTransport({ baseUrl: HOST })
    expect((await transport.request({ method: 'DELETE', path: '/x', signal: unaborted() })).attempts).toBe(2)
    expect((await transport.request({ method: 'POST', path: '/x', idempotent: true, signal: unaborted() })).attempts).toBe(2)
  })

  it('follows another policy when it is given one', async () => {
    nock(HOST).get('/x').times(2).reply(500)
    const transport = testTransport({ baseUrl: HOST, policy: { attempts: 2 } })
    expect((await failureOf(transport.request({ method: 'GET', path: '/x', signal: unaborted() }))).attempts).toBe(2)
  })

  it('refuses to wait for longer than the deadline', async () => {
    nock(HOST).get('/x').reply(429, { detail: 'hourly limit' }, { 'retry-after': '3000' })
    const effects = virtualEffects()
    const deadline = startDeadline({ timeoutMs: 60_000, parent: unaborted(), effects })
    const transport = testTransport({ baseUrl: HOST, effects })
    const failure = await failureOf(transport.request({ method: 'GET', path: '/x', signal: deadline.signal }))
    deadline.stop()
    expect(failure.message).toBe(
      'GET /x answered 429 Too Many Requests and asked to wait 3000 s, but what is left of the time is 60 s: hourly limit',
    )
    expect(transport.waitedForRateLimitMs()).toBe(0)
  })
})
