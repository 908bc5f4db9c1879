import { describe, expect, it } from 'vitest'
import type { Github } from '../../../src/action/github/github.ts'
import { postRecord } from '../../../src/action/github/post.ts'
import { deadlineOf } from '../../../src/client/deadline.ts'
import { fakeEffects } from '../support/effects.ts'
import { githubContext } from '../support/github.ts'

type Scene = { record?: unknown; revisionId?: string; fails?: unknown; connected?: boolean }

async function post({ record, revisionId = '', fails, connected = true }: Scene) {
  const [lines, warnings, statuses, limits]: [string[], string[], unknown[], number[]] = [[], [], [], []]
  const effects = fakeEffects()
  const state: Record<string, string> = { deploymentRecord: record === undefined ? '' : JSON.stringify(record), revisionId }
  const github: Pick<Github, 'createDeploymentStatus'> = {
    createDeploymentStatus: async (options, signal) => {
      limits.push((deadlineOf(signal) ?? Infinity) - effects.now())
      if (fails !== undefined) throw fails
      statuses.push(options)
    },
  }
  let asked = 0
  await postRecord({
    getState: (key) => state[key] ?? '',
    github: () => (asked++, connected ? (github as Github) : undefined),
    context: githubContext(),
    effects,
    log: { info: (line) => void lines.push(line), warning: (line) => void warnings.push(line) },
  })
  return { lines, warnings, statuses, limits, asked }
}

const RECORD = { environment: 'staging', step: 's', id: 5 }
const STOPPED = 'The step was stopped before it was done; the revision may go on by itself'
const NOTHING = { lines: [], warnings: [], statuses: [], limits: [] }
const STATUS = {
  deploymentId: 5,
  autoInactive: false,
  logUrl: 'https://github.com/acme/agents/actions/runs/1/attempts/1',
}

describe('post', () => {
  it('asks nobody where nothing is left', async () => {
    expect(await post({})).toEqual({ ...NOTHING, asked: 0 })
  })

  it('does nothing without GitHub', async () => {
    expect(await post({ record: RECORD, connected: false })).toEqual({ ...NOTHING, asked: 1 })
  })

  it.each([
    ['', STOPPED],
    ['r1', 'The step was stopped before it was done; the revision r1 may go on by itself'],
  ])('ends the record of a step that was stopped, with the revision %j', async (revisionId, description) => {
    expect(await post({ record: RECORD, revisionId })).toEqual({
      lines: [`The deployment record of 'staging' was set to error: ${description}.`],
      warnings: [],
      statuses: [{ ...STATUS, state: 'error', description }],
      limits: [6000],
      asked: 1,
    })
  })

  it('ends a record as main wanted to', async () => {
    const end = { state: 'success', description: 'Revision r1 serves', environmentUrl: 'https://a' }
    const { lines, statuses } = await post({ record: { ...RECORD, end }, revisionId: 'r1' })
    expect(statuses).toEqual([{ ...STATUS, ...end }])
    expect(lines).toEqual(["The deployment record of 'staging' was set to success: Revision r1 serves."])
  })

  it.each([
    [new Error('it failed'), 'it failed'],
    ['words', 'words'],
  ])('warns where GitHub does not take it: %s', async (fails, why) => {
    const { lines, warnings } = await post({ record: RECORD, fails })
    expect(lines).toEqual([])
    expect(warnings).toEqual([`environment: ${why}. The deployment record of 'staging' may stay as it is.`])
  })
})
