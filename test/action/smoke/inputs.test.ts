import { describe, expect, it } from 'vitest'
import { parseInputs, type RawInputs } from '../../../src/action/inputs.ts'
import { DIGEST } from '../support/answers.ts'
import { githubContext } from '../support/github.ts'
import { DEFAULT_INPUTS, refusal } from '../support/inputs.ts'

const parse = (changes: Partial<RawInputs>) =>
  parseInputs({ ...DEFAULT_INPUTS, 'deployment-name': 'agent', ...changes }, githubContext())
const refused = (changes: Partial<RawInputs>): string => refusal(() => parse(changes))

const INPUT = { 'smoke-test-input': '{"messages":[]}' } as const

describe('the inputs of the smoke test', () => {
  it('turn it on, with its defaults', () => {
    expect(parse(INPUT).smokeTest).toEqual({
      input: { messages: [] },
      configPath: 'langgraph.json',
      streamMode: 'updates',
      timeoutMs: 120_000,
    })
    expect(parse({})).not.toHaveProperty('smokeTest')
  })

  it('are all taken over', () => {
    const all = {
      ...INPUT,
      'smoke-test-assistant': 'agent',
      'smoke-test-stream-mode': 'messages-tuple',
      'smoke-test-expect': '^po+ng$',
      'smoke-test-timeout': '45s',
      'config-path': 'agents/one.json',
    }
    expect(parse(all).smokeTest).toEqual({
      input: { messages: [] },
      assistant: 'agent',
      configPath: 'agents/one.json',
      streamMode: 'messages-tuple',
      expect: '^po+ng$',
      timeoutMs: 45_000,
    })
  })

  it('look for the configuration where the checkout may have that of the deployment, and nowhere else', () => {
    expect(parse({ ...INPUT, 'repo-url': 'https://github.com/acme/agents.git' }).smokeTest?.configPath).toBe('langgraph.json')
    expect(parse({ ...INPUT, 'repo-url': 'https://github.com/acme/other' }).smokeTest).not.toHaveProperty('configPath')
    expect(parse({ ...INPUT, 'image-uri': DIGEST }).smokeTest?.configPath).toBe('langgraph.json')
  })

  it('are refused without an input to run', () => {
    expect(refused({ 'smoke-test-expect': 'pong' })).toContain('smoke-test-expect is set, and smoke-test-input is empty')
    expect(refused({ 'smoke-test-assistant': 'agent' })).toContain('set smoke-test-input, or take smoke-test-assistant out')
  })

  it.each<[Partial<RawInputs>, string[]]>([
    [{ 'smoke-test-input': 'hunter2' }, ['smoke-test-input is not JSON', 'accepted: a JSON object']],
    [{ 'smoke-test-input': '[{"password":"hunter2"}]' }, ['is JSON, but an array']],
    [
      { ...INPUT, 'smoke-test-stream-mode': 'Updates' },
      ["smoke-test-stream-mode 'Updates'", 'values, updates, messages, messages-tuple, custom', 'write updates'],
    ],
    [{ ...INPUT, 'smoke-test-expect': '(pong' }, ["smoke-test-expect '(pong' is not a regular expression (Unterminated group)"]],
    [{ ...INPUT, 'smoke-test-timeout': '30' }, ["smoke-test-timeout '30' has no unit"]],
  ])('%j is refused before any request', (changes, words) => {
    const message = refused(changes)
    for (const expected of words) expect(message).toContain(expected)
    expect(message).not.toContain('hunter2')
  })

  it('warn that nothing is tested without a wait', () => {
    expect(parse({ ...INPUT, wait: 'false' }).warnings).toEqual([expect.stringContaining('The smoke test is skipped')])
    expect(parse({ wait: 'false' }).warnings).toEqual([])
  })
})
