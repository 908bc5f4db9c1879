import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createSend, type GithubRequest, type SendOptions } from '../../../src/action/github/request.ts'
import { startDeadline } from '../../../src/client/deadline.ts'
import type { RetryEvent } from '../../../src/client/retry.ts'
import { readBody, startServer, type TestServer } from '../../support/http-server.ts'
import { fakeEffects } from '../support/effects.ts'
import { failureOf } from './support.ts'

type Reply = { status?: number; headers?: Record<string, string>; body?: string }
type Seen = { method: string | undefined; url: string | undefined; headers: Record<string, unknown>; body: string }

let server: TestServer | undefined

afterEach(async () => {
  vi.restoreAllMocks()
  await server?.stop()
  server = undefined
})

/** A server that answers in turn, the last answer again and again, and a client of it. */
async function connect(replies: Reply[], options: Partial<SendOptions> = {}, path = '') {
  const seen: Seen[] = []
  const { url } = (server = await startServer(async (request, response) => {
    const { method, url: asked, headers } = request
    seen.push({ method, url: asked, headers, body: (await readBody(request)).toString() })
    const { status = 200, headers: given, body = '{}' } = (replies.length > 1 ? replies.shift() : replies[0]) ?? {}
    response.writeHead(status, { 'content-type': 'application/json', ...given }).end(body)
  }))
  const effects = fakeEffects()
  const retries: RetryEvent[] = []
  const send = createSend({
    token: 'the-token',
    apiUrl: `${url}${path}`,
    redact: (text) => text.replaceAll('agents', '***'),
    effects,
    onRetry: (event) => void retries.push(event),
    ...options,
  })
  return { send, seen, effects, retries }
}

const request = (changes: Partial<GithubRequest<unknown>> = {}): GithubRequest<unknown> => ({
  operation: 'reading it',
  permission: 'contents: read',
  route: 'GET /repos/{owner}/{repo}',
  parameters: { owner: 'acme', repo: 'agents' },
  schema: z.unknown(),
  signal: new AbortController().signal,
  ...changes,
})

const OUTAGE = { status: 502 }
const POST = { route: 'POST /repos/{owner}/{repo}' } as const

describe('a request', () => {
  it('has the token, the version of the interface and its parameters', async () => {
    const { send, seen } = await connect([{ body: '{"a":1}', headers: { link: '<x>; rel="next"' } }], {}, '//')
    const parameters = { owner: 'acme', repo: 'agents', page: 2 }
    expect(await send(request({ parameters }))).toEqual({ body: { a: 1 }, link: '<x>; rel="next"' })
    expect(seen).toMatchObject([
      {
        method: 'GET',
        url: '/repos/acme/agents?page=2',
        headers: { authorization: 'token the-token', 'x-github-api-version': '2022-11-28' },
        body: '',
      },
    ])
    expect(seen[0]?.headers['user-agent']).toMatch(/^deploy-agent-server/)
  })

  it('has what is not in its path in its body', async () => {
    const { send, seen } = await connect([{ status: 201 }])
    const parameters = { owner: 'acme', repo: 'agents', text: 'ü' }
    expect((await send(request({ ...POST, parameters }))).link).toBeUndefined()
    expect(seen).toMatchObject([{ method: 'POST', url: '/repos/acme/agents', body: '{"text":"ü"}' }])
  })

  it.each([
    ['', '/graphql'],
    ['/api/v3', '/api/graphql'],
    ['/api/v3/', '/api/graphql'],
    ['/api/v3/more', '/api/v3/more/graphql'],
  ])('for GraphQL below %j goes to %s', async (path, url) => {
    const { send, seen } = await connect([{}], {}, path)
    await send(request({ route: 'POST /graphql', parameters: { query: 'q' } }))
    expect(seen).toMatchObject([{ url, body: '{"query":"q"}' }])
  })

  it('below a path stays below it', async () => {
    const { send, seen } = await connect([{}], {}, '/api/v3')
    await send(request())
    expect(seen).toMatchObject([{ url: '/api/v3/repos/acme/agents' }])
  })

  it('says nothing by itself', async () => {
    const said = (['debug', 'info', 'log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name))
    const headers = { deprecation: 'Sat, 01 Jan 2028 00:00:00 GMT', sunset: 'later', link: '<https://x>; rel="deprecation"' }
    const { send } = await connect([{ headers }])
    await send(request())
    expect(said.map(({ mock }) => mock.calls)).toEqual([[], [], [], [], []])
  })
})

describe('repetitions', () => {
  it('are four, each after a longer wait', async () => {
    const { send, seen, effects, retries } = await connect([OUTAGE])
    const failure = await failureOf(send(request()))
    expect(failure.message).toBe('reading it failed: GET /repos/acme/*** answered 502 (tried 5 times)')
    expect(seen).toHaveLength(5)
    expect(effects.slept).toEqual([250, 500, 1000, 2000])
    const event = { reason: 'answered 502', method: 'GET', path: '/repos/acme/***', status: 502 }
    expect(retries).toEqual(effects.slept.map((waitMs, index) => ({ ...event, attempt: index + 1, waitMs })))
  })

  it('wait eight seconds at most', async () => {
    const effects = { ...fakeEffects(), random: () => 1 }
    const { send } = await connect([OUTAGE], { effects, policy: { attempts: 7 } })
    await failureOf(send(request()))
    expect(effects.slept).toEqual([500, 1000, 2000, 4000, 8000, 8000])
  })

  it('of what cannot be an answer are one', async () => {
    const { send, seen } = await connect([{ body: '<html>', headers: { 'content-type': 'text/html' } }])
    const failure = await failureOf(send(request({ schema: z.object({}) })))
    expect(failure.request).toMatchObject({ code: 'html', attempts: 2 })
    expect(seen).toHaveLength(2)
  })

  it.each([
    [POST, 1],
    [{ ...POST, idempotent: true }, 5],
    [{ idempotent: false }, 1],
  ] as [Partial<GithubRequest<unknown>>, number][])('of %j make %s attempts', async (changes, attempts) => {
    const { send, seen } = await connect([OUTAGE])
    expect((await failureOf(send(request(changes)))).request).toMatchObject({ attempts, ambiguous: true })
    expect(seen).toHaveLength(attempts)
  })

  it('of a port that no client may use are none', async () => {
    const { send, effects } = await connect([], { apiUrl: 'http://127.0.0.1:1' })
    const failure = await failureOf(send(request()))
    expect(failure.message).toBe('reading it failed: GET /repos/acme/*** could not reach GitHub: bad port')
    expect(effects.slept).toEqual([])
  })

  it('have five minutes, where the caller sets no end', async () => {
    const limit = (seconds: number): Reply => ({ status: 429, headers: { 'retry-after': String(seconds) } })
    const { send, effects } = await connect([limit(299), limit(2)])
    expect((await failureOf(send(request()))).message).toBe(
      'reading it failed: GET /repos/acme/*** answered 429, a rate limit and asked to wait 2 s, ' +
        'but what is left of the time is 1 s (tried 2 times)',
    )
    expect(effects.slept).toEqual([299_000])
  })

  it('have as long as the caller gives them', async () => {
    const effects = fakeEffects()
    const { send } = await connect([{ status: 429, headers: { 'retry-after': '301' } }, {}], { effects })
    const deadline = startDeadline({ timeoutMs: 400_000, parent: new AbortController().signal, effects })
    await send(request({ signal: deadline.signal }))
    deadline.stop()
    expect(effects.slept).toEqual([301_000])
  })

  it('end with a mistake of who is told of them', async () => {
    const mistake = new Error('a mistake')
    const onRetry = (): void => {
      throw mistake
    }
    const { send } = await connect([OUTAGE], { onRetry })
    await expect(send(request())).rejects.toBe(mistake)
  })
})

describe('a failure', () => {
  it.each([
    [{ 'x-accepted-github-permissions': 'contents=write' }, 'contents: write'],
    [{}, 'contents: read'],
  ])('with the headers %j names a permission', async (headers, permission) => {
    const { send } = await connect([
      { status: 403, headers, body: '{"message":"Resource not accessible by personal access token"}' },
    ])
    expect(await failureOf(send(request()))).toMatchObject({ operation: 'reading it', permission, status: 403 })
  })

  it('keeps the token to itself', async () => {
    const { send } = await connect([{ status: 422, body: '{"message":"the-token of agents"}' }])
    expect((await failureOf(send(request()))).request.detail).toBe('*** of ***')
  })

  it.each([
    [undefined, 15],
    [2000, 2],
  ])('with a limit of %s says that there was no answer within %s s', async (timeoutMs, seconds) => {
    const timeout = vi
      .spyOn(AbortSignal, 'timeout')
      .mockImplementation(() => AbortSignal.abort(new DOMException('x', 'TimeoutError')))
    const { send } = await connect([{}], { policy: { attempts: 1 }, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    const failure = await failureOf(send(request()))
    expect(failure.message).toBe(`reading it failed: GET /repos/acme/*** got no complete answer from GitHub within ${seconds} s`)
    expect(timeout.mock.calls).toEqual([[seconds * 1000]])
  })

  it('of an ended step is its end', async () => {
    const { send } = await connect([{}])
    const signal = AbortSignal.abort(new DOMException('received SIGINT', 'AbortError'))
    const failure = await failureOf(send(request({ signal })))
    expect(failure.message).toBe('reading it failed: GET /repos/acme/*** was cancelled')
    expect(failure.request).toMatchObject({ kind: 'cancelled', attempts: 1 })
  })
})
