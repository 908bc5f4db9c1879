import { describe, expect, test } from 'vitest'
import { describeCrash, Unloadable } from '../../../../src/platform/control-plane/runtimes/describe-crash.ts'

const LAUNCHER = 'file:///srv/platform/src/launcher.ts'

/** An error as an agent's own module throws it: its frame lies between those of Node and of the launcher. */
function thrown(message: string, { cause, ...more }: { cause?: unknown; code?: string } = {}): Error {
  const error = Object.assign(new Error(message, cause === undefined ? {} : { cause }), more)
  error.stack = [
    `Error: ${message}`,
    '    at node:internal/modules/esm/loader:600:5',
    '    at Object.connect (node:internal/net:10:3)',
    '    at make (file:///agent/graph.mjs:3:9)',
    '    at async ModuleJob.run (node:internal/modules/esm/module_job:1:2)',
    `    at async load (${LAUNCHER}:88:13)`,
    `    at async ${LAUNCHER}:140:1`,
  ].join('\n')
  return error
}

describe('a crash of an agent at its start', () => {
  test('is told with the frames of the agent alone', () => {
    const error = new Unloadable('graph: graph.mjs could not be loaded: boom', thrown('boom'))
    expect(describeCrash(error, LAUNCHER)).toBe('Error: boom\n    at make (file:///agent/graph.mjs:3:9)')
  })

  test('keeps what belongs to the error: its code, its causes and what it says of other frames', () => {
    const quoted = 'a child ended:\n    at x (node:internal/child:1:1)'
    const error = thrown(quoted, { code: 'E_CHILD', cause: thrown('deeper') })
    const text = describeCrash(new Unloadable('graph', error), LAUNCHER)
    expect(text).toContain(`Error: ${quoted}\n    at make (file:///agent/graph.mjs:3:9)`)
    expect(text).toMatch(/code: 'E_CHILD'/)
    expect(text).toMatch(/\[cause\]: Error: deeper\n\s+at make \(file:\/\/\/agent\/graph\.mjs:3:9\)/)
    expect(text.match(/node:internal|launcher/g)).toEqual(['node:internal'])
  })

  test('has every error of several', () => {
    const text = describeCrash(new AggregateError([thrown('one'), thrown('two')], 'both'), LAUNCHER)
    expect(text).toMatch(/both[\s\S]*Error: one\n\s+at make[\s\S]*Error: two\n\s+at make/)
    expect(text).not.toMatch(/net:10|launcher/)
  })

  test('without any frame of the agent is the sentence alone', () => {
    const error = new Error('no export')
    error.stack = `Error: no export\n    at checkGraph (${LAUNCHER}:70:11)`
    expect(describeCrash(error, LAUNCHER)).toBe('Error: no export')
  })

  test('of an error without a message, or without its errors, has what there is', () => {
    const nameless = thrown('quiet')
    Object.assign(nameless, { message: undefined })
    expect(describeCrash(new Unloadable('graph', nameless), LAUNCHER)).toMatch(/at make \(file:\/\/\/agent\/graph\.mjs:3:9\)/)
    const empty = Object.assign(new AggregateError([], 'several'), { errors: undefined })
    expect(describeCrash(new Unloadable('graph', empty), LAUNCHER)).toContain('AggregateError: several')
  })

  test('that is no error, or one that cannot be changed, is shown as it is', () => {
    expect(describeCrash(new Unloadable('graph', 'a word'), LAUNCHER)).toBe("'a word'")
    expect(describeCrash(new Unloadable('graph: undefined', undefined), LAUNCHER)).toMatch(/graph: undefined/)
    const fixed = Object.defineProperty(new Error('fixed'), 'stack', { get: () => 'Error: fixed\n    at node:internal/net:1:1' })
    expect(describeCrash(fixed, LAUNCHER)).toBe('Error: fixed\n    at node:internal/net:1:1')
  })
})
