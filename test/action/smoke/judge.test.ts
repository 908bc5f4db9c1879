import { describe, expect, it } from 'vitest'
import { type Attempt, attemptRun, isUnknownAssistant, isWarmingUp, notBegun } from '../../../src/action/smoke/attempt.ts'
import { judge } from '../../../src/action/smoke/judge.ts'
import type { RunEvent } from '../../../src/contract/run-stream.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { fakeEffects } from '../support/effects.ts'

const SLOW = 'Read the log of the agent on the control plane; raise smoke-test-timeout if it is merely slow.'
const KEY = 'The agent server refuses api-key: check that the key belongs to the workspace of the deployment.'
const INPUT = 'Check smoke-test-input against what the graph takes.'

const attempt = (changes: Partial<Attempt> = {}): Attempt => ({ ...notBegun(), ...changes })

const SOME = new Map([['metadata', 1]])
const deadline = requestFailure({ kind: 'deadline', summary: 'ran out of time' })

function verdict(changes: Partial<Attempt>, rest: Partial<Parameters<typeof judge>[0]> = {}) {
  return judge({ attempt: attempt(changes), expect: undefined, timeoutMs: 90_000, before: undefined, ...rest })
}

describe('what is wrong with an answer', () => {
  it('is nothing, where the agent has answered', () => {
    expect(verdict({ agentEvents: 1 })).toBeUndefined()
    expect(verdict({ agentEvents: 1, text: 'pong' }, { expect: 'po' })).toBeUndefined()
  })

  it.each<[string, Partial<Attempt>, string | undefined, { happened: string; next: string }]>([
    [
      'an error event',
      { error: 'no\n such   tool', agentEvents: 1 },
      undefined,
      {
        happened: 'The run failed with an error event: no such tool',
        next: 'Read the log of the agent on the control plane; the same input shows the error on any machine.',
      },
    ],
    [
      'no event at all',
      {},
      undefined,
      {
        happened: 'The run ended without a single event of the agent (events: none).',
        next: 'Check that the graph does something for smoke-test-input, and that smoke-test-stream-mode shows it.',
      },
    ],
    [
      'no event of the agent',
      {
        events: new Map([
          ['metadata', 1],
          ['end', 2],
        ]),
      },
      'pong',
      {
        happened: 'The run ended without a single event of the agent (events: metadata 1, end 2).',
        next: 'Check that the graph does something for smoke-test-input, and that smoke-test-stream-mode shows it.',
      },
    ],
    [
      'other words',
      { agentEvents: 1, text: 'ping' },
      'pong',
      {
        happened: 'What the agent said does not match smoke-test-expect: pong',
        next: 'Correct the agent, or what smoke-test-expect looks for.',
      },
    ],
    [
      'no words',
      { agentEvents: 1 },
      `a${'b'.repeat(300)}`,
      {
        happened: `The agent streamed no text that smoke-test-expect could match: a${'b'.repeat(198)}…`,
        next: 'Correct the agent, or what smoke-test-expect looks for.',
      },
    ],
  ])('is %s', (_, changes, expected, problem) => {
    expect(verdict(changes, { expect: expected })).toEqual(problem)
  })
})

describe('what is wrong where a request failed', () => {
  it.each<[string, Partial<Attempt>, Partial<Parameters<typeof judge>[0]>, { happened: string; next: string }]>([
    [
      'is that the run was too long',
      { failure: deadline, events: SOME },
      { before: httpFailure(503) },
      { happened: 'The run had not ended when the 1 min 30 s of smoke-test-timeout were over.', next: SLOW },
    ],
    [
      'is that there was no answer',
      { failure: deadline },
      {},
      {
        happened: 'No run passed within the 1 min 30 s of smoke-test-timeout: the agent server did not answer',
        next: SLOW,
      },
    ],
    [
      'is the answer before',
      { failure: deadline },
      { before: httpFailure(503) },
      { happened: 'No run passed within the 1 min 30 s of smoke-test-timeout: GET /v2/deployments answered 503', next: SLOW },
    ],
    [
      'is the assistant, and there are others',
      { failure: httpFailure(404, { detail: 'Not Found' }) },
      { others: ['a', 'b\nc'] },
      {
        happened:
          "GET /v2/deployments answered 404: Not Found\nThe agent server does not have this assistant. It has 'a', 'b c'.",
        next: 'Set smoke-test-assistant to one that the agent server has.',
      },
    ],
    [
      'is the assistant, and there are ten others',
      { failure: httpFailure(404) },
      { others: [...'abcdefghij'] },
      {
        happened:
          'GET /v2/deployments answered 404\nThe agent server does not have this assistant. ' +
          "It has 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'.",
        next: 'Set smoke-test-assistant to one that the agent server has.',
      },
    ],
    [
      'is the assistant, and there are eleven others',
      { failure: httpFailure(404) },
      { others: [...'abcdefghijk'] },
      {
        happened:
          'GET /v2/deployments answered 404\nThe agent server does not have this assistant. ' +
          "It has 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j' and 1 more.",
        next: 'Set smoke-test-assistant to one that the agent server has.',
      },
    ],
    [
      'is the assistant by the words of the server',
      { failure: httpFailure(404, { detail: 'Graph not found.' }) },
      {},
      {
        happened: 'GET /v2/deployments answered 404: Graph not found.',
        next: 'Set smoke-test-assistant to a graph that the configuration file names.',
      },
    ],
    [
      'is that nothing is there yet',
      { failure: httpFailure(502) },
      {},
      { happened: 'No run passed within the 1 min 30 s of smoke-test-timeout: GET /v2/deployments answered 502', next: SLOW },
    ],
    ['is the key (401)', { failure: httpFailure(401) }, {}, { happened: 'GET /v2/deployments answered 401', next: KEY }],
    ['is the key (403)', { failure: httpFailure(403) }, {}, { happened: 'GET /v2/deployments answered 403', next: KEY }],
    ['is the input (400)', { failure: httpFailure(400) }, {}, { happened: 'GET /v2/deployments answered 400', next: INPUT }],
    ['is the input (422)', { failure: httpFailure(422) }, {}, { happened: 'GET /v2/deployments answered 422', next: INPUT }],
    [
      'is what the answer began with',
      { failure: httpFailure(500, { excerpt: 'Internal\nServer Error' }) },
      {},
      { happened: 'GET /v2/deployments answered 500\nThe answer began with: Internal Server Error', next: SLOW },
    ],
    [
      'is the detail of the answer, once',
      { failure: httpFailure(500, { excerpt: '{"detail":"no"}', detail: 'no' }) },
      {},
      { happened: 'GET /v2/deployments answered 500: no', next: SLOW },
    ],
    [
      'is a stream that broke off',
      { failure: requestFailure({ kind: 'protocol', code: 'truncated', summary: 'broke' }), events: SOME },
      {},
      { happened: 'The stream of the run broke off: GET /v2/deployments broke', next: SLOW },
    ],
  ])('%s', (_, changes, rest, problem) => {
    expect(verdict(changes, rest)).toEqual(problem)
  })
})

describe('an agent that may need a moment more', () => {
  it.each<[string, Partial<Attempt>, boolean]>([
    ...[404, 408, 425, 429, 502, 503, 504].map(
      (status) => [`${status}`, { failure: httpFailure(status) }, true] as [string, Partial<Attempt>, boolean],
    ),
    ...[400, 401, 403, 409, 422, 500, 501].map(
      (status) => [`${status}`, { failure: httpFailure(status) }, false] as [string, Partial<Attempt>, boolean],
    ),
    ['an answer', {}, false],
    ['503 after an event', { failure: httpFailure(503), events: SOME }, false],
    ['ECONNREFUSED', { failure: requestFailure({ code: 'ECONNREFUSED' }) }, true],
    ['no code', { failure: requestFailure() }, true],
    ['a certificate', { failure: requestFailure({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }) }, false],
    [
      'plain http where TLS was asked for',
      { failure: requestFailure({ code: 'EPROTO', detail: 'error:0A00010B:SSL routines::wrong version number' }) },
      false,
    ],
    ['a broken stream', { failure: requestFailure({ kind: 'protocol', code: 'truncated' }) }, true],
    ['HTML', { failure: requestFailure({ kind: 'protocol', code: 'html' }) }, false],
    ['the end of the time', { failure: deadline }, false],
    ['a word that only looks so', { failure: requestFailure({ kind: 'unsupported', code: 'truncated', status: 404 }) }, false],
  ])('%s: %j', (_, changes, expected) => {
    expect(isWarmingUp(attempt(changes))).toBe(expected)
  })

  it.each<[ReturnType<typeof httpFailure>, boolean]>([
    [httpFailure(404, { detail: 'No assistant found' }), true],
    [httpFailure(404, { detail: 'GRAPH x' }), true],
    [httpFailure(404, { excerpt: 'assistant x' }), true],
    [httpFailure(404, { detail: 'Not Found' }), false],
    [httpFailure(404, { detail: 'langgraph-api' }), false],
    [httpFailure(404), false],
    [httpFailure(422, { detail: 'No assistant found' }), false],
  ])('%s names an assistant: %j', (failure, expected) => {
    expect(isUnknownAssistant(failure)).toBe(expected)
  })
})

describe('one run', () => {
  type Step = RunEvent | Error | number

  async function run(steps: readonly Step[]) {
    const effects = fakeEffects()
    let taken = 0
    const agent = {
      url: 'https://agent.example.com/',
      async *streamRun() {
        for (const step of steps) {
          taken += 1
          if (step instanceof Error) throw step
          if (typeof step === 'number') effects.advance(step)
          else yield step
        }
      },
      searchAssistants: async () => [],
      ok: async () => undefined,
    }
    const { signal } = new AbortController()
    const result = await attemptRun({ agent, assistant: 'a', input: {}, streamMode: 'updates', signal, effects })
    return { ...result, events: [...result.events], taken }
  }

  const update: RunEvent = { event: 'updates', data: { node: { answer: 'pong' } } }

  it('is counted and timed from the request', async () => {
    const result = await run([5, { event: 'metadata', data: {} }, 10, update, 20, update, 30])
    expect(result).toMatchObject({ agentEvents: 2, firstEventMs: 15, endMs: 65, error: undefined, failure: undefined })
    expect(result.events).toEqual([
      ['metadata', 1],
      ['updates', 2],
    ])
  })

  it('is over with an error event, and with an end', async () => {
    const failed = await run([update, { event: 'error', data: { message: 'no such tool' } }, update])
    expect(failed).toMatchObject({ agentEvents: 1, endMs: 0, taken: 2 })
    expect(failed.error).toContain('no such tool')
    const ended = await run([update, { event: 'end', data: null }, update])
    expect(ended).toMatchObject({ agentEvents: 1, taken: 2, error: undefined })
  })

  it('keeps what came before it broke off', async () => {
    const broken = requestFailure({ kind: 'protocol', code: 'truncated' })
    const result = await run([3, update, broken])
    expect(result).toMatchObject({ agentEvents: 1, firstEventMs: 3, endMs: undefined, failure: broken })
    await expect(run([new TypeError('a fault')])).rejects.toThrow('a fault')
  })

  it('has twenty names of sixty characters at most, and the rest as others', async () => {
    const named = (event: string): RunEvent => ({ event, data: 1 })
    const long = 'x'.repeat(60)
    const first = Array.from({ length: 19 }, (_, index) => named(`n${index}`))
    const { events } = await run([named(long), named(`${long}x`), ...first, named('n18'), named('late')])
    expect(events).toEqual([[long, 1], ['others', 4], ...Array.from({ length: 18 }, (_, index) => [`n${index}`, 1])])
  })
})
