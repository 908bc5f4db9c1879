import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Action, startPreviewWorld, type PreviewWorld } from '../support/preview-world.ts'

/** What happens to one pull request, and how many milliseconds after that its step begins; all steps run at once. */
type Life = { name: string; events: readonly (readonly [action: Action, begins: number])[] }

const LIVES: readonly Life[] = [
  {
    name: 'pushes in quick succession',
    events: [
      ['opened', 0],
      ['synchronize', 900],
      ['synchronize', 0],
    ],
  },
  {
    name: 'a push whose step comes after the close',
    events: [
      ['opened', 0],
      ['synchronize', 3000],
      ['closed', 0],
    ],
  },
  {
    name: 'the close before the open',
    events: [
      ['opened', 2500],
      ['closed', 0],
    ],
  },
  {
    name: 'closed, opened again and pushed to, the close last',
    events: [
      ['opened', 0],
      ['closed', 2000],
      ['reopened', 500],
      ['synchronize', 0],
    ],
  },
  {
    name: 'opened again and closed again',
    events: [
      ['opened', 0],
      ['closed', 300],
      ['reopened', 0],
      ['closed', 1500],
    ],
  },
  {
    name: 'closed twice, opened again late',
    events: [
      ['opened', 500],
      ['closed', 0],
      ['reopened', 2000],
      ['closed', 1000],
      ['reopened', 0],
    ],
  },
]

let world: PreviewWorld

beforeAll(async () => {
  world = await startPreviewWorld()
})
afterAll(() => world?.dispose())

describe('without a concurrency group', { timeout: 240_000 }, () => {
  it.each(LIVES.map((life, index) => ({ ...life, number: index + 1 })))('$name', async ({ events, number }) => {
    const steps: Promise<string | undefined>[] = []
    for (const [action, begins] of events) {
      if (action === 'opened') await world.open(number, { installMs: 1000 })
      if (action === 'synchronize') await world.push(number, { installMs: 1000 })
      if (action === 'reopened') world.reopen(number)
      if (action === 'closed') world.close(number)
      const event = world.event(number, action)
      steps.push(delay(begins).then(async () => (await world.step(event)).outputs['status']))
      await delay(700)
    }
    const ended = await Promise.all(steps)
    const pull = world.github.state.pullRequests.get(number)
    const name = `fast-agent-pr-${number}`
    const final = pull?.state === 'open' ? [{ name, status: 'READY', revision: 'DEPLOYED', commit: pull.headSha }] : []
    const projects = (await world.projects()).filter((project) => project === name)
    expect({ previews: await world.previews(name), projects, ended }).toEqual({
      previews: final,
      projects: final.map(() => name),
      ended,
    })
    for (const status of ended) expect(['deployed', 'removed', 'skipped', 'superseded']).toContain(status)
  })
})
