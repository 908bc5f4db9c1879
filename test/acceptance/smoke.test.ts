import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { type AgentDouble, METADATA, says, sse, startAgentDouble, steps } from '../support/agent-double.ts'
import type { DoubleOptions, ScriptStep } from '../support/control-plane-model.ts'
import { startServer } from '../support/http-server.ts'
import { readable } from '../support/readable.ts'
import { DEPLOYED, type Ending, failed, type Scene, withScene } from '../support/scene.ts'

const QUICK: readonly ScriptStep[] = [['DEPLOYED']]
const TEST = {
  'smoke-test-input': '{"messages": [{"role": "user", "content": "ping"}]}',
  'smoke-test-assistant': 'agent',
  'smoke-test-timeout': '20s',
}
const GOOD = steps.stream(METADATA, says('echo 1: ping'))

/** A scene whose deployments are served by the double of an agent. */
async function withAgent(
  script: Parameters<typeof startAgentDouble>[0],
  body: (scene: Scene & { agent: AgentDouble }) => Promise<void>,
  options: DoubleOptions = {},
): Promise<void> {
  const agent = await startAgentDouble(script)
  // Where a deployment has an address, it is the agent's.
  const rewrite = (answer: unknown): unknown => {
    if (typeof answer !== 'object' || answer === null) return answer
    if ('resources' in answer && Array.isArray(answer.resources)) return { ...answer, resources: answer.resources.map(rewrite) }
    return 'url' in answer && answer.url !== null ? { ...answer, url: agent.url } : answer
  }
  try {
    await withScene({ script: QUICK, rewrite, ...options }, (scene) => body({ ...scene, agent }))
  } finally {
    await agent.stop()
  }
}

const red = (...says: string[]): Ending => failed('E_SMOKE_TEST', ...says)

describe.concurrent('a smoke test that passes', () => {
  it('is told in the outputs, the log and the summary', () =>
    withAgent({ runs: [GOOD] }, async ({ agent, run, plane, flaws }) => {
      const result = await run({ with: { ...TEST, 'smoke-test-expect': 'echo \\d: ping$' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(agent.requests).toMatchObject([
        {
          method: 'POST',
          path: '/agents/echo/runs/stream',
          headers: { 'x-api-key': plane.apiKey, 'content-type': 'application/json' },
          body: {
            assistant_id: 'agent',
            input: { messages: [{ role: 'user', content: 'ping' }] },
            stream_mode: 'updates',
            on_disconnect: 'cancel',
          },
        },
      ])
      expect(result.outputs).toMatchObject({
        'smoke-test': 'passed',
        'smoke-test-first-event-ms': expect.stringMatching(/^\d+$/),
      })
      const summary = readable(result.summary)
      for (const part of ['Smoke test: passed', 'metadata 1, updates 1', 'echo 1: ping', '| First event | after'])
        expect(summary).toContain(part)
      expect(result.log).toContain('The smoke test passed')
    }))

  it('waits for a revision that warms up', () =>
    withAgent(
      {
        runs: [
          steps.answer(404, { detail: 'Not Found' }),
          steps.reset(),
          steps.answer(503, '<h1>Warming up</h1>', { 'retry-after': '1' }),
          steps.breakOff(),
          GOOD,
        ],
      },
      async ({ agent, run, flaws }) => {
        const result = await run({ with: TEST })
        expect(await flaws(result, DEPLOYED)).toEqual([])
        expect(agent.runs()).toHaveLength(5)
        expect(result.log.match(/The agent is not there yet/g)).toHaveLength(4)
      },
    ))

  it('waits for an agent that nothing listens for yet', () =>
    withAgent({ runs: [GOOD] }, async ({ agent, run, flaws }) => {
      await agent.down()
      setTimeout(() => void agent.up(), 3000)
      expect(await flaws(await run({ with: TEST }), DEPLOYED)).toEqual([])
    }))

  it('runs the first graph of the configuration in the checkout', async () => {
    const checkout = await mkdtemp(join(tmpdir(), 'checkout-'))
    await writeFile(join(checkout, 'langgraph.json'), '{"graphs":{"first":"./a.mjs:graph","second":"./b.mjs:graph"}}')
    await withAgent({ runs: [GOOD], graphs: ['listed'] }, async ({ agent, run, flaws }) => {
      const result = await run({ with: { ...TEST, 'smoke-test-assistant': '' }, cwd: checkout })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(agent.runs()).toMatchObject([{ assistant_id: 'first' }])
    })
    await rm(checkout, { recursive: true })
  })

  it('runs the first graph that the server lists, where there is no checkout', () =>
    withAgent({ runs: [GOOD], graphs: ['listed', 'other'] }, async ({ agent, run, plane, flaws }) => {
      const result = await run({ with: { ...TEST, 'smoke-test-assistant': '' } })
      expect(await flaws(result, DEPLOYED)).toEqual([])
      expect(agent.runs()).toMatchObject([{ assistant_id: 'listed' }])
      expect(agent.requests[0]).toMatchObject({ path: '/agents/echo/assistants/search', headers: { 'x-api-key': plane.apiKey } })
    }))
})

describe.concurrent('a smoke test that fails', () => {
  it.each([
    [
      'an error event',
      steps.stream(METADATA, sse('error', { error: 'ValueError', message: 'no such tool' })),
      ['ValueError: no such tool', 'metadata 1, error 1'],
    ],
    ['no event of the agent', steps.stream(METADATA), ['without a single event of the agent', 'metadata 1']],
    ['an early close', steps.breakOff(METADATA, says('echo')), ['broke off', 'The agent said: echo', 'updates 1']],
    ['half an event', steps.stream(METADATA, says('echo').slice(0, -10)), ['the stream ended in the middle of an event']],
    ['another answer', steps.stream(METADATA, says('pong')), ['does not match smoke-test-expect', 'The agent said: pong']],
    ['a refused key', steps.answer(401, { detail: 'Invalid API key' }), ['answered 401', 'Invalid API key', 'api-key']],
    [
      'a refused input',
      steps.answer(422, { detail: [{ loc: ['body', 'input'], msg: 'Field required' }] }),
      ['body.input: Field required'],
    ],
    [
      'a sign-in page',
      steps.answer(200, '<!doctype html><p>Sign in', { 'content-type': 'text/html' }),
      ['HTML instead of a stream', 'Sign in'],
    ],
    [
      'a giant event',
      steps.stream(METADATA, `data: "${'x'.repeat(9_000_000)}"\n\n`),
      ['with an event of more than 8388608 characters'],
    ],
  ])('with %s is red at once', (_, step, words) =>
    withAgent({ runs: [step, GOOD] }, async ({ agent, run, flaws }) => {
      const result = await run({ with: { ...TEST, 'smoke-test-expect': '^echo 1: ping$' } })
      const says = [...words, "to the assistant 'agent' (stream mode updates)", 'once']
      expect(await flaws(result, red(...says))).toEqual([])
      expect(agent.runs()).toHaveLength(1)
      expect(result.outputs).toMatchObject({ 'smoke-test': 'failed', 'revision-status': 'DEPLOYED' })
      expect(readable(result.summary)).toContain('Smoke test: failed')
    }),
  )

  it.each([
    ['before the stream', steps.answer(503, { detail: 'starting' }), ['No run passed within the 2 s', 'starting']],
    ['without an answer', () => undefined, ['No run passed within the 2 s']],
    ['in the stream', steps.stall(METADATA, says('echo')), ['The run had not ended when the 2 s', 'The agent said: echo']],
  ])('because the time is over %s is red in time', (_, step, words) =>
    withAgent({ runs: [step] }, async ({ agent, run, flaws }) => {
      const result = await run({ with: { ...TEST, 'smoke-test-timeout': '2s' } })
      expect(await flaws(result, red(...words))).toEqual([])
      expect(result.durationMs).toBeLessThan(12_000)
      await vi.waitFor(() => expect(agent.requests.filter(({ gone }) => !gone)).toEqual([]))
    }),
  )

  it('because of an expression without an end is red in time', () =>
    withAgent({ runs: [steps.stream(METADATA, says(`${'a'.repeat(80)}!`))] }, async ({ run, flaws }) => {
      const result = await run({ with: { ...TEST, 'smoke-test-expect': '^(a+)+$' } })
      expect(await flaws(result, red('took too long'))).toEqual([])
    }))

  it('does not send the key to where a redirect points', async () => {
    const seen: unknown[] = []
    const elsewhere = await startServer((request, response) => {
      seen.push(request.headers)
      steps.stream(METADATA, says('echo 1: ping'))(response, request)
    })
    await withAgent({ runs: [steps.answer(307, '', { location: `${elsewhere.url}/runs/stream` })] }, async ({ run, flaws }) => {
      const result = await run({ with: TEST })
      expect(await flaws(result, red('answered 307', 'redirects are not followed'))).toEqual([])
    })
    await elsewhere.stop()
    expect(seen).toEqual([])
  })

  it('says which fields have no address', () =>
    withAgent(
      { runs: [GOOD] },
      async ({ agent, run, flaws }) => {
        const result = await run({ with: TEST })
        expect(await flaws(result, red('url and source_config.custom_url are both empty'))).toEqual([])
        expect(agent.requests).toEqual([])
      },
      { address: 'none' },
    ))

  it('lets nothing that an agent says act, or leak', () =>
    withAgent(
      {
        runs: [
          (response, request) => {
            const key = String(request.headers['x-api-key'])
            const commands = '::error::planted\n::add-mask::a\n##[error]x\n\u001b[31mred\u0000'
            const hostile = `${commands} </pre><script>${key}</script> | ![x](https://evil.example) @octocat`
            steps.stream(
              METADATA,
              sse(`updates|${key}\u001b[2J::error::x`, { a: hostile }),
              says(hostile),
              sse('error', `${key} ${hostile}`),
            )(response, request)
          },
        ],
      },
      async ({ run, flaws }) => {
        const result = await run({ with: TEST })
        expect(await flaws(result, red())).toEqual([])
        expect(result.commandsIssued.filter(({ name }) => name === 'error')).toHaveLength(1)
        // What stands between these two is neither Markdown nor HTML, once it is escaped.
        const markdown = result.summary.replace(/<pre>[^<]*<\/pre>/g, '')
        expect(markdown).not.toMatch(/<pre|<script>|!\[x\]|@octocat/)
        expect(`${result.log}${result.summary}`).not.toContain('\u001b')
      },
    ))
})

describe.concurrent('a smoke test that does not take place', () => {
  it('because the workflow is cancelled ends its stream in time', () =>
    withAgent({ runs: [steps.stall(METADATA, says('echo'))] }, async ({ agent, run, flaws }) => {
      let requested = false
      const result = await run({
        with: TEST,
        cancelWhen: () => {
          requested = agent.requests.length > 0
          return requested
        },
      })
      expect(await flaws(result, { status: 'cancelled', code: 'E_CANCELLED' })).toEqual([])
      expect(result.endedAfterSignalMs).toBeLessThan(4000)
      expect(result.outputs['smoke-test']).toBe('skipped')
      await vi.waitFor(() => expect(agent.requests.filter(({ gone }) => !gone)).toEqual([]))
    }))

  it.each([
    ['the revision failed', {}, [['BUILD_FAILED']] as const, failed('E_BUILD_FAILED')],
    ['the step does not wait', { wait: 'false' }, QUICK, DEPLOYED],
    ['the step only plans', { 'dry-run': 'true' }, QUICK, { status: 'planned' }],
  ])('because %s is skipped', (_, inputs, script, ending) =>
    withAgent(
      { runs: [GOOD] },
      async ({ agent, run, flaws }) => {
        const result = await run({ with: { ...TEST, ...inputs } })
        expect(await flaws(result, ending)).toEqual([])
        expect(result.outputs['smoke-test']).toBe('skipped')
        expect(agent.requests).toEqual([])
      },
      { script },
    ),
  )
})
