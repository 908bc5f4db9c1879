import { describe, expect, it, vi } from 'vitest'
import { runPost } from '../../src/action/post.ts'
import { httpFailure } from './support/answers.ts'
import { fakeDeps } from './support/deps.ts'

const made = { isPost: 'true', deploymentId: 'd', revisionId: 'r' }

async function post(state: Record<string, string>, onCancel: 'leave' | 'interrupt' = 'interrupt', deps = fakeDeps()) {
  const connect = vi.fn(() => ({ onCancel, deps }))
  await runPost({ getState: (key) => state[key] ?? '', connect, log: deps.log })
  return {
    said: [...deps.lines, ...deps.warnings].join('\n'),
    interrupted: vi.mocked(deps.controlPlane.interruptRevision).mock.calls.length,
    connect,
  }
}

describe('post', () => {
  it.each([
    ['main has concluded', { ...made, done: 'true' }],
    ['main never began', {}],
  ])('says and does nothing when %s', async (_, state) => {
    expect(await post(state)).toMatchObject({ said: '', interrupted: 0 })
  })

  it('interrupts what main had no time to interrupt', async () => {
    expect(await post(made)).toMatchObject({ interrupted: 1, said: expect.stringContaining('asked to interrupt the revision r') })
    expect((await post({ ...made, done: 'true', interrupt: 'cancel' }, 'leave')).interrupted).toBe(1)
    expect((await post({ ...made, done: 'true', interrupt: 'timeout' }, 'leave')).interrupted).toBe(1)
  })

  it('leaves it alone when it is told to, and says that it goes on', async () => {
    expect(await post(made, 'leave')).toMatchObject({ interrupted: 0, said: expect.stringContaining('goes on by itself') })
  })

  it('does not interrupt what has ended', async () => {
    expect(await post({ ...made, ended: 'true' })).toMatchObject({ interrupted: 0 })
  })

  it('says what may have been left behind', async () => {
    expect((await post({ isPost: 'true', pending: "create the deployment 'agent'" })).said).toContain(
      "asked to create the deployment 'agent'",
    )
  })

  it('never throws', async () => {
    const deps = fakeDeps({ interruptRevision: vi.fn(async () => Promise.reject(httpFailure(500))) })
    expect((await post(made, 'interrupt', deps)).said).toContain('could not be interrupted')
    const broken = fakeDeps()
    await runPost({
      getState: (key) => ({ ...made })[key as keyof typeof made] ?? '',
      connect: () => {
        throw new Error('no inputs')
      },
      log: broken.log,
    })
    expect(broken.warnings).toEqual([expect.stringContaining('no inputs')])
  })
})
