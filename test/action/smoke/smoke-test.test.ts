import { describe, expect, it, vi } from 'vitest'
import type { AgentServer, StreamRunOptions } from '../../../src/client/agent-server.ts'
import type { RunEvent } from '../../../src/contract/run-stream.ts'
import type { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { type SmokeTest, smokeTest } from '../../../src/action/smoke/smoke-test.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { fakeDeps, type TestDeps } from '../support/deps.ts'

const TEST: SmokeTest = { input: { messages: [] }, assistant: 'agent', streamMode: 'updates', timeoutMs: 120_000 }
const METADATA: RunEvent = { event: 'metadata', data: { run_id: 'r' } }
const ANSWER: RunEvent = { event: 'updates', data: { echo: { messages: [{ type: 'ai', content: 'echo 1: ping', id: 'a' }] } } }
const GOOD = [METADATA, ANSWER]

/** One run: events, and the failure that breaks the stream off, if one does. A function is called when the run begins. */
type Run = readonly (RunEvent | Error | (() => void))[]

/** An agent server that answers the runs in this order, the last one again and again. */
function scripted(
  runs: readonly Run[],
  assistants: () => Promise<{ assistant_id: string; graph_id: string; name: null }[]> = async () => [],
) {
  const asked: StreamRunOptions[] = []
  const addresses: string[] = []
  const agentServer = (url: string): AgentServer => {
    addresses.push(url)
    return {
      url,
      streamRun: async function* (options) {
        asked.push(options)
        for (const step of runs[Math.min(asked.length, runs.length) - 1] ?? []) {
          if (typeof step === 'function') step()
          else if (step instanceof Error) throw step
          else yield step
        }
      },
      searchAssistants: assistants,
      ok: async () => undefined,
    }
  }
  return { agentServer, asked, addresses }
}

async function smoke({
  runs,
  test = {},
  address = 'https://agent.example.com',
  deps = fakeDeps(),
  assistants,
  checkout,
}: {
  runs: readonly Run[]
  test?: Partial<SmokeTest>
  address?: string
  deps?: TestDeps
  assistants?: Parameters<typeof scripted>[1]
  checkout?: (path: string) => string | undefined
}) {
  const { agentServer, asked, addresses } = scripted(runs, assistants)
  deps.journal.set('deployment-url', address)
  const failure = await smokeTest({
    test: { ...TEST, ...test },
    deps: { ...deps, agentServer, ...(checkout === undefined ? {} : { checkout }) },
  }).then(
    () => undefined,
    (error: ActionFailure) => error,
  )
  return { ...deps, failure, asked, addresses, report: deps.journal.smokeTest }
}

const stream503 = httpFailure(503, { method: 'POST', path: '/runs/stream' })
const refused = requestFailure({ kind: 'network', code: 'ECONNREFUSED', summary: 'could not reach agent.example.com' })
const broken = requestFailure({
  kind: 'protocol',
  status: 200,
  code: 'truncated',
  summary: 'answered 200 and then the connection broke',
})

describe('a smoke test', () => {
  it('passes with one event of the agent, and tells about it', async () => {
    const deps = fakeDeps()
    const { failure, outputs, asked, report, lines } = await smoke({
      runs: [[() => deps.effects.advance(40), ...GOOD, () => deps.effects.advance(500)]],
      deps,
    })
    expect(failure).toBeUndefined()
    expect(asked).toEqual([{ assistantId: 'agent', input: { messages: [] }, streamMode: 'updates', signal: expect.anything() }])
    expect(outputs).toMatchObject({ 'smoke-test': 'passed', 'smoke-test-first-event-ms': '40' })
    expect(report).toEqual({
      result: 'passed',
      address: 'https://agent.example.com/',
      assistant: 'agent',
      streamMode: 'updates',
      attempts: 1,
      events: 'metadata 1, updates 1',
      firstEventMs: 40,
      endMs: 540,
      said: ['echo 1: ping'],
    })
    expect(lines.at(-1)).toBe('The smoke test passed: first event after 40 ms, end after 540 ms (metadata 1, updates 1).')
  })

  it.each(['ping', '^echo \\d: ping$', '(?i:ECHO)'])('passes when the text matches %s', async (expected) => {
    expect((await smoke({ runs: [GOOD], test: { expect: expected } })).failure).toBeUndefined()
  })

  it('passes without an end event, and with one after which the connection stays', async () => {
    const end: RunEvent = { event: 'end', data: null }
    expect((await smoke({ runs: [[...GOOD, end, broken]] })).failure).toBeUndefined()
  })

  it.each<[string, Run, RegExp]>([
    [
      'an error event',
      [...GOOD, { event: 'error', data: { error: 'ValueError', message: 'no such tool' } }],
      /error event: ValueError: no such tool/,
    ],
    ['an error event of a subgraph', [{ event: 'error|sub:1', data: 'Run not found' }, ANSWER], /error event: Run not found/],
    ['an error event without words', [{ event: 'error', data: { code: 3 } }], /an error without words/],
    ['nothing', [], /without a single event of the agent \(events: none\)/],
    [
      'only what the server says by itself',
      [METADATA, { event: 'messages/metadata', data: {} }, { event: 'heartbeat', data: null }, { event: 'end', data: null }],
      /without a single event of the agent \(events: metadata 1, messages\/metadata 1, heartbeat 1, end 1\)/,
    ],
    ['an early close after an event', [...GOOD, broken], /The stream of the run broke off: .* the connection broke/],
    ['an early close after the metadata', [METADATA, broken], /broke off/],
    ['a refused key', [httpFailure(401, { detail: 'Invalid API key' })], /answered 401/],
    ['a refused input', [httpFailure(422, { detail: 'body.input: wrong' })], /answered 422/],
    ['a server error', [httpFailure(500)], /answered 500/],
    ['a redirect', [httpFailure(307)], /answered 307/],
    [
      'a sign-in page',
      [requestFailure({ kind: 'protocol', status: 200, code: 'html', summary: 'answered 200 with HTML', excerpt: '<p>Sign in' })],
      /The answer began with: <p>Sign in/,
    ],
    [
      'an untrusted certificate',
      [requestFailure({ code: 'SELF_SIGNED_CERT_IN_CHAIN', summary: 'could not reach it' })],
      /could not reach it/,
    ],
  ])('fails at once with %s', async (_, run, words) => {
    const { failure, asked, outputs, report } = await smoke({ runs: [run, GOOD] })
    expect(failure).toMatchObject({ code: 'E_SMOKE_TEST' })
    expect(failure?.message).toMatch(words)
    expect(failure?.tried).toContain(
      "smoke-test-input was sent to the assistant 'agent' (stream mode updates) at https://agent.example.com/, once.",
    )
    expect(asked).toHaveLength(1)
    expect(outputs['smoke-test']).toBe('failed')
    expect(report?.result).toBe('failed')
  })

  it('fails when the text does not match, and shows it', async () => {
    const { failure, asked } = await smoke({ runs: [GOOD], test: { expect: '^pong$' } })
    expect(failure?.message).toBe('What the agent said does not match smoke-test-expect: ^pong$\nThe agent said: echo 1: ping')
    expect(asked).toHaveLength(1)
    const silent = await smoke({ runs: [[{ event: 'updates', data: { node: null } }]], test: { expect: '.' } })
    expect(silent.failure?.message).toContain('no text')
  })

  it('fails in time on an expression that would never come to an end', async () => {
    const long: RunEvent = { event: 'custom', data: `${'a'.repeat(60)}!` }
    const start = performance.now()
    const { failure } = await smoke({ runs: [[long]], test: { expect: '^(a+)+$' } })
    expect(performance.now() - start).toBeLessThan(5000)
    expect(failure).toMatchObject({ code: 'E_SMOKE_TEST', next: expect.stringContaining('repetitions inside repetitions') })
    expect(failure?.message).toContain('took too long')
  })

  it('counts events by name, without subgraphs, and no more names than fit', async () => {
    const named = (event: string): RunEvent => ({ event, data: { a: 1 } })
    const many = Array.from({ length: 100 }, (_, index) => named(`made-up-${index}`))
    const { report } = await smoke({ runs: [[named('updates|a:1'), named('updates|b:2'), named('x'.repeat(10_000)), ...many]] })
    expect(report?.events).toMatch(/^updates 2, others 83, made-up-0 1,/)
    expect(report?.events.length).toBeLessThan(500)
  })

  it('hides secrets that the agent repeats, also where they are cut', async () => {
    const said = `${`${'x'.repeat(1329)}\n`.repeat(3)}key-of-the-test`
    const { failure, report } = await smoke({
      runs: [
        [
          { event: 'custom', data: said },
          { event: 'error', data: 'key-of-the-test' },
        ],
      ],
    })
    expect(`${failure?.message}${failure?.tried}${JSON.stringify(report)}`).not.toContain('key-of')
    expect(failure?.message).toContain('error event: ***')
  })
})

describe('a revision that warms up', () => {
  it.each<[string, Error]>([
    ['nothing that listens', refused],
    ['404', httpFailure(404, { detail: 'Not Found' })],
    ['429', httpFailure(429, { retryAfterMs: 7000 })],
    ['502', httpFailure(502)],
    ['503', stream503],
    ['504', httpFailure(504)],
    ['a connection that breaks before an event', broken],
  ])('is asked again after %s', async (_, failure) => {
    const { failure: final, asked, effects, outputs, report, lines } = await smoke({ runs: [[failure], [failure], GOOD] })
    expect(final).toBeUndefined()
    expect(asked).toHaveLength(3)
    expect(outputs['smoke-test']).toBe('passed')
    expect(report?.attempts).toBe(3)
    expect(Math.min(...effects.slept)).toBeGreaterThan(0)
    if (failure.message.includes('429')) expect(effects.slept).toEqual([7000, 7000])
    expect(lines.filter((line) => line.startsWith('The agent is not there yet'))).toEqual([
      `The agent is not there yet: ${failure.message}. Asking again until 2 min are over.`,
    ])
  })

  it('says each reason once, as a sentence, and once a minute that it still is not there', async () => {
    const missing = httpFailure(404, { detail: 'No deployment at /agents/a.' })
    const { lines } = await smoke({ runs: [[missing], [stream503], [stream503], [missing]], test: { timeoutMs: 180_000 } })
    const told = lines.filter((line) => line.startsWith('The agent is'))
    expect(told.slice(0, 3)).toEqual([
      'The agent is not there yet: GET /v2/deployments answered 404: No deployment at /agents/a. Asking again until 3 min are over.',
      'The agent is not there yet: POST /runs/stream answered 503. Asking again until 3 min are over.',
      'The agent is not there yet: GET /v2/deployments answered 404: No deployment at /agents/a. Asking again until 3 min are over.',
    ])
    expect(told.slice(3)).toEqual([
      expect.stringMatching(/^The agent is still not there after 1 min( \d+ s)?\.$/),
      expect.stringMatching(/^The agent is still not there after 2 min( \d+ s)?\.$/),
    ])
  })

  it('is given up at the end of the time, with the last reason', async () => {
    const { failure, asked, effects } = await smoke({ runs: [[refused], [stream503]], test: { timeoutMs: 30_000 } })
    expect(failure?.code).toBe('E_SMOKE_TEST')
    expect(failure?.message).toMatch(/^No run passed within the 30 s of smoke-test-timeout: POST \/runs\/stream answered 503/)
    expect(failure?.tried).toContain(`${asked.length} times. Events that came: none.`)
    const slept = effects.slept.reduce((sum, ms) => sum + ms, 0)
    expect(slept).toBeGreaterThan(25_000)
    expect(slept).toBeLessThanOrEqual(30_000)
  })

  it('is not waited for longer than there is time, whatever it asks', async () => {
    const { failure, asked, effects } = await smoke({ runs: [[httpFailure(503, { retryAfterMs: 3_600_000 })]] })
    expect(failure?.message).toContain('answered 503')
    expect(asked).toHaveLength(1)
    expect(effects.slept).toEqual([])
  })

  it('may say for a moment that it has no such assistant, and no longer', async () => {
    const unknown = httpFailure(404, { detail: 'No assistant found for "agnet".' })
    expect((await smoke({ runs: [[unknown], GOOD] })).failure).toBeUndefined()
    const { failure, effects } = await smoke({ runs: [[unknown]] })
    expect(failure?.next).toBe('Set smoke-test-assistant to a graph that the configuration file names.')
    expect(effects.slept.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(10_000)
  })

  const missing = httpFailure(404, { detail: 'Not Found' })
  const graphs = (...names: string[]) =>
    names.map((graph, index) => ({ assistant_id: `id-${index}`, graph_id: graph, name: null }))
  const sleptMs = ({ slept }: { slept: number[] }) => slept.reduce((sum, ms) => sum + ms, 0)

  it('is not asked for ever for an assistant that its list does not have, whatever its 404 says', async () => {
    const { failure, effects, report } = await smoke({
      runs: [[missing]],
      assistants: async () => graphs('echo', 'echo', 'other'),
    })
    expect(failure).toMatchObject({
      code: 'E_SMOKE_TEST',
      message:
        'GET /v2/deployments answered 404: Not Found\n' +
        "The agent server does not have this assistant. It has 'echo', 'other'.",
      next: 'Set smoke-test-assistant to one that the agent server has.',
    })
    expect(sleptMs(effects)).toBeGreaterThanOrEqual(10_000)
    expect(sleptMs(effects)).toBeLessThan(20_000)
    expect(report?.result).toBe('failed')
  })

  it('may have had nothing behind its address for long, before it says for a moment that it has no such assistant', async () => {
    const unknown = httpFailure(404, { detail: 'No assistant found for "agent".' })
    const runs = [...Array.from({ length: 6 }, () => [missing]), [unknown], [unknown], GOOD]
    const { failure, effects } = await smoke({ runs })
    expect(failure).toBeUndefined()
    expect(sleptMs(effects)).toBeGreaterThan(10_000)
  })

  it('is told from one that says so itself, which is not asked for longer than 10 s', async () => {
    const unknown = httpFailure(404, { detail: 'No assistant found for "agnet".' })
    const { failure, effects } = await smoke({ runs: [[unknown]], assistants: async () => graphs('echo') })
    expect(failure?.message).toContain("It has 'echo'.")
    expect(sleptMs(effects)).toBeLessThanOrEqual(10_000)
  })

  it('names no more assistants than fit, and none that is a secret', async () => {
    const names = ['key-of-the-test', ...Array.from({ length: 12 }, (_, index) => `graph-${index}`)]
    const { failure } = await smoke({ runs: [[missing]], assistants: async () => graphs(...names) })
    expect(failure?.message).toMatch(/It has '\*\*\*', 'graph-0',.*'graph-8' and 3 more\.$/)
  })

  it.each<[string, Parameters<typeof scripted>[1]]>([
    ['has the graph', async () => graphs('other', 'agent')],
    ['has an assistant of this id', async () => [{ assistant_id: 'agent', graph_id: 'other', name: null }]],
    ['lists nothing yet', async () => []],
    ['does not list anything', () => Promise.reject(missing)],
  ])('is waited for when it answers 404 and %s', async (_, assistants) => {
    const runs = [...Array.from({ length: 6 }, () => [missing]), GOOD]
    const { failure, effects } = await smoke({ runs, assistants })
    expect(failure).toBeUndefined()
    expect(sleptMs(effects)).toBeGreaterThan(10_000)
    const never = await smoke({ runs: [[missing]], assistants })
    expect(never.failure?.message).toMatch(/^No run passed within the 2 min of smoke-test-timeout: .* answered 404/)
  })

  it('is not asked for its list in the first 10 s', async () => {
    let listed = 0
    const assistants = async () => {
      listed += 1
      return graphs('echo')
    }
    expect((await smoke({ runs: [[missing], [missing], [missing], GOOD], assistants })).failure).toBeUndefined()
    expect(listed).toBe(0)
  })

  it('is not cancelled by its list, and the step is', async () => {
    const deps = fakeDeps()
    const assistants = async () => {
      deps.abort()
      throw requestFailure({ kind: 'cancelled', summary: 'was cancelled' })
    }
    expect((await smoke({ runs: [[missing]], assistants, deps })).failure).toMatchObject({ code: 'E_CANCELLED' })
  })

  it('gets no second chance after a wrong answer', async () => {
    const { asked, failure } = await smoke({ runs: [[stream503], [METADATA, { event: 'error', data: 'no' }], GOOD] })
    expect(asked).toHaveLength(2)
    expect(failure?.message).toContain('error event')
  })

  it('is judged by its last answer when the time is over between two attempts', async () => {
    vi.useFakeTimers()
    try {
      const deps = fakeDeps({}, () => vi.advanceTimersByTime(TEST.timeoutMs))
      const { failure, asked, outputs, report } = await smoke({ runs: [[stream503], GOOD], deps })
      expect(failure).toMatchObject({
        code: 'E_SMOKE_TEST',
        message: 'No run passed within the 2 min of smoke-test-timeout: POST /runs/stream answered 503',
      })
      expect(asked).toHaveLength(1)
      expect(outputs['smoke-test']).toBe('failed')
      expect(report?.attempts).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })

  it('is cancelled between two attempts as well', async () => {
    const deps: TestDeps = fakeDeps({}, () => deps.abort())
    expect((await smoke({ runs: [[stream503], GOOD], deps })).failure).toMatchObject({ code: 'E_CANCELLED' })
  })

  it('that is still streaming at the deadline has not passed', async () => {
    const deadline = requestFailure({ kind: 'deadline', summary: 'ran out of time', method: 'POST', path: '/runs/stream' })
    const slow = await smoke({ runs: [[...GOOD, deadline]] })
    expect(slow.failure?.message).toBe(
      'The run had not ended when the 2 min of smoke-test-timeout were over.\nThe agent said: echo 1: ping',
    )
    const silent = await smoke({ runs: [[stream503], [deadline]] })
    expect(silent.failure?.message).toContain(
      'No run passed within the 2 min of smoke-test-timeout: POST /runs/stream answered 503',
    )
  })
})

describe('the assistant', () => {
  const config = JSON.stringify({ graphs: { first: './a.py:graph', second: './b.py:graph' } })
  const listed = async () =>
    ['oldest', 'oldest', 'newer'].map((graph, index) => ({ assistant_id: `${index}`, graph_id: graph, name: null }))
  const noAssistant = { assistant: undefined } as unknown as Partial<SmokeTest>

  it('is the one that is named', async () => {
    const { asked } = await smoke({ runs: [GOOD], test: { configPath: 'langgraph.json' }, checkout: () => config })
    expect(asked[0]?.assistantId).toBe('agent')
  })

  it('is otherwise the first graph of the configuration in the checkout', async () => {
    const paths: string[] = []
    const { asked } = await smoke({
      runs: [GOOD],
      test: { ...noAssistant, configPath: 'agents/langgraph.json' },
      checkout: (path) => {
        paths.push(path)
        return config
      },
    })
    expect(asked[0]?.assistantId).toBe('first')
    expect(paths).toEqual(['agents/langgraph.json'])
  })

  it.each([
    ['nothing', undefined],
    ['no JSON', '{"graphs": {'],
    ['no graphs', '{"dependencies": ["."]}'],
    ['graphs of another kind', '{"graphs": ["agent"]}'],
    ['an empty configuration', '{"graphs": {}}'],
    ['null', 'null'],
  ])('is the server’s first when the checkout has %s', async (_, text) => {
    const { asked, lines } = await smoke({
      runs: [GOOD],
      test: { ...noAssistant, configPath: 'langgraph.json' },
      checkout: () => text,
      assistants: listed,
    })
    expect(asked[0]?.assistantId).toBe('oldest')
    expect(lines).toContain("The assistant is 'oldest', the first of 2 graphs of the agent server.")
  })

  it('is the server’s first, without a look at a checkout of another repository', async () => {
    const { asked } = await smoke({ runs: [GOOD], test: noAssistant, checkout: () => config, assistants: listed })
    expect(asked[0]?.assistantId).toBe('oldest')
  })

  it('is asked for again while the server warms up, and then no more', async () => {
    let asked = 0
    const assistants = async () => {
      asked += 1
      if (asked === 1) throw stream503
      return await listed()
    }
    const { failure } = await smoke({ runs: [[stream503], GOOD], test: noAssistant, assistants })
    expect(failure).toBeUndefined()
    expect(asked).toBe(2)
  })

  it('is missing when the server lists none, or refuses', async () => {
    const none = await smoke({ runs: [GOOD], test: noAssistant, assistants: async () => [] })
    expect(none.failure?.message).toContain('the agent server lists no assistant')
    expect(none.failure?.tried).toContain('to no assistant yet')
    const forbidden = await smoke({ runs: [GOOD], test: noAssistant, assistants: () => Promise.reject(httpFailure(403)) })
    expect(forbidden.failure?.next).toContain('refuses api-key')
    expect(forbidden.asked).toEqual([])
  })
})

describe('the address', () => {
  it.each(['https://agent.example.com/base', 'http://127.0.0.1:8787/agents/a', 'http://localhost/a', 'http://[::1]:1/a'])(
    '%s gets the run, without a warning',
    async (address) => {
      const { addresses, warnings } = await smoke({ runs: [GOOD], address })
      expect(addresses).toEqual([new URL(address).href])
      expect(warnings).toEqual([])
    },
  )

  it('gets it with a warning where the key would travel in the clear', async () => {
    const { warnings, failure } = await smoke({ runs: [GOOD], address: 'http://agents.example.com' })
    expect(failure).toBeUndefined()
    expect(warnings).toEqual([
      'The address of the deployment is plain http: the API key travels unencrypted to agents.example.com.',
    ])
  })

  it.each([
    ['', 'url and source_config.custom_url are both empty'],
    ['agents.example.com/a', 'is not an address'],
    ['ftp://agents.example.com', 'is neither https nor http'],
    ['https://user:secret@agents.example.com', 'carries credentials'],
    ['https://agents.example.com/?token=secret', 'has a query'],
  ])('%s gets nothing', async (address, words) => {
    const { failure, addresses, outputs } = await smoke({ runs: [GOOD], address })
    expect(failure).toMatchObject({ code: 'E_SMOKE_TEST' })
    expect(failure?.message).toContain(words)
    expect(failure?.message).not.toContain('secret')
    expect(addresses).toEqual([])
    expect(outputs['smoke-test']).toBe('failed')
  })
})

describe('a cancelled step', () => {
  it('ends a stream', async () => {
    const deps = fakeDeps()
    deps.journal.set('smoke-test', 'skipped')
    const cancelled = requestFailure({ kind: 'cancelled', summary: 'was cancelled' })
    const { failure, outputs, report } = await smoke({ runs: [[METADATA, deps.abort, cancelled]], deps })
    expect(failure).toMatchObject({ code: 'E_CANCELLED' })
    expect(outputs['smoke-test']).toBe('skipped')
    expect(report).toBeUndefined()
  })

  it('ends a wait', async () => {
    const deps = fakeDeps({}, () => deps.abort())
    const { failure, asked } = await smoke({ runs: [[stream503]], deps })
    expect(failure).toMatchObject({ code: 'E_CANCELLED' })
    expect(asked).toHaveLength(1)
  })
})
