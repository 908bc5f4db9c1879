import { describe, expect, it, vi } from 'vitest'
import { deadlineOf } from '../../src/client/deadline.ts'
import type { LogEntryAnswer } from '../../src/contract/answers.ts'
import { readLogTail } from '../../src/action/log-tail.ts'
import { httpFailure } from '../support/request-failure.ts'
import { DEPLOYMENT_ID, NEW_REVISION_ID } from './support/answers.ts'
import { fakeDeps, type TestDeps } from './support/deps.ts'

function read(status: string, deps: TestDeps) {
  return readLogTail({ deploymentId: DEPLOYMENT_ID, revisionId: NEW_REVISION_ID, status, deps })
}

const plain = (message: string): LogEntryAnswer => ({ message, level: null, timestamp: null })

/** The lines that a log of these entries, newest first, comes to. */
async function linesOf(entries: LogEntryAnswer[]) {
  return (await read('BUILD_FAILED', fakeDeps({ revisionLogs: async () => ({ entries, nextOffset: null }) })))?.lines
}

describe('the end of a log', () => {
  it.each<[string, Partial<LogEntryAnswer>, string[]]>([
    ['its time', { timestamp: Date.UTC(2026, 0, 1, 23, 4, 5, 678) }, ['23:04:05 text']],
    ['no time that no clock shows', { timestamp: 8.64e15 + 1 }, ['text']],
    ['no time before all clocks', { timestamp: -8.64e15 - 1 }, ['text']],
    ['the level', { level: 'ERROR' }, ['ERROR text']],
    ['no level that says nothing', { level: 'INFO' }, ['text']],
    ['both', { level: 'WARNING', timestamp: 0 }, ['00:00:00 WARNING text']],
    ['each line', { message: 'one\r\ntwo\nthree\n\r\n', level: 'ERROR' }, ['ERROR one', 'ERROR two', 'ERROR three']],
    ['empty lines in between', { message: 'one\n\ntwo' }, ['one', '', 'two']],
  ])('shows %s', async (_, entry, lines) => {
    expect(await linesOf([{ ...plain('text'), ...entry }])).toEqual(lines)
  })

  it('can show the last moment that there is', async () => {
    expect(await linesOf([{ ...plain('text'), timestamp: 8.64e15 }])).toHaveLength(1)
  })

  it('has its last 200 lines, oldest first', async () => {
    const old = Array.from({ length: 150 }, (_, line) => `old ${line}`)
    const young = Array.from({ length: 100 }, (_, line) => `young ${line}`)
    expect(await linesOf([plain(young.join('\n')), plain(old.join('\n'))])).toEqual([...old.slice(50), ...young])
  })

  it.each([
    ['CREATE_FAILED', ['build'], 'The control plane has no build log of this revision.'],
    ['BUILD_FAILED', ['build'], 'The control plane has no build log of this revision.'],
    ['DEPLOY_FAILED', ['deploy', 'build'], 'The control plane has no deploy and no build log of this revision.'],
    ['WARMUP_FAILED', ['deploy', 'build'], 'The control plane has no deploy and no build log of this revision.'],
  ])('of a revision that is %s is looked for in %j', async (status, types, note) => {
    const leftMs: number[] = []
    const deps = fakeDeps({
      revisionLogs: vi.fn(async ({ signal }) => {
        leftMs.push(deadlineOf(signal)! - deps.effects.now())
        return { entries: [], nextOffset: null }
      }),
    })
    expect(await read(status, deps)).toBeUndefined()
    expect(vi.mocked(deps.controlPlane.revisionLogs).mock.calls.map(([asked]) => asked)).toEqual(
      types.map((type) => ({
        deploymentId: DEPLOYMENT_ID,
        revisionId: NEW_REVISION_ID,
        type,
        limit: 200,
        order: 'desc',
        timeoutMs: 30_000,
        signal: expect.any(AbortSignal),
      })),
    )
    expect(leftMs).toEqual(types.map(() => 30_000))
    expect(deps.journal.notes).toEqual([note])
  })

  it.each(['deploy', 'build'])('says that it is that of the %s log', async (filled) => {
    const deps = fakeDeps({
      revisionLogs: async ({ type }) => ({ entries: type === filled ? [plain('text')] : [], nextOffset: null }),
    })
    expect(await read('DEPLOY_FAILED', deps)).toEqual({ title: `The end of the ${filled} log`, lines: ['text'] })
    expect(deps.journal.notes).toEqual([])
  })

  it.each([
    [httpFailure(500), 'GET /v2/deployments answered 500'],
    ['out of order', 'out of order'],
  ])('becomes a note when it cannot be read', async (error, words) => {
    const deps = fakeDeps({ revisionLogs: vi.fn().mockRejectedValue(error) })
    expect(await read('BUILD_FAILED', deps)).toBeUndefined()
    expect(deps.journal.notes).toEqual([`The log of the revision could not be read: ${words}`])
  })
})
