import { describe, expect, it } from 'vitest'
import { fakeDeps } from '../support/deps.ts'
import { createHub } from './support/hub.ts'
import { createService } from './support/service.ts'
import { pullRequestEvent, runStep } from './support/step.ts'

const PULL_REQUEST = 7
const LIVES = 300

type Action = 'opened' | 'synchronize' | 'closed' | 'reopened'

/** The same numbers for the same seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below)
  }
}

async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setImmediate(resolve))
}

/** A life of a pull request: what happens to it, one after the other. */
function actionsOf(pick: (below: number) => number): Action[] {
  const actions: Action[] = ['opened']
  let open = true
  for (let left = pick(7); left > 0; left--) {
    const action: Action = open ? (pick(2) === 0 ? 'synchronize' : 'closed') : 'reopened'
    actions.push(action)
    open = action !== 'closed'
  }
  return actions
}

/**
 * Lives through it: each event starts a step some time later, and all of them run at once, without the concurrency group that the
 * example has. The steps are those of one workflow with mode: preview for all events.
 */
async function live(seed: number) {
  const pick = numbers(seed)
  const pause = () => ticks(1 + pick(3))
  const hub = createHub(pause)
  const pullRequest = hub.add(PULL_REQUEST)
  const service = createService({ pause, headOf: () => pullRequest.headSha, deletionReads: pick(4) })
  const actions = actionsOf(pick)
  const steps: Promise<string>[] = []
  for (const [index, action] of actions.entries()) {
    pullRequest.state = action === 'closed' ? 'closed' : 'open'
    if (action === 'synchronize') pullRequest.headSha = String(index).repeat(40)
    const context = pullRequestEvent({ ...pullRequest }, action)
    const late = pick(3) === 0 ? pick(60) : pick(8)
    const deps = fakeDeps()
    const { sleep } = deps.effects
    deps.effects.sleep = async (ms, signal) => {
      await pause()
      await sleep(ms, signal)
    }
    const step = async () => {
      await ticks(late)
      const { status, code, failure } = await runStep({ context, controlPlane: service.controlPlane, github: hub, deps })
      return `${action}: ${status ?? `${code}: ${failure?.message}`}`
    }
    steps.push(step())
    await ticks(pick(40))
  }
  return { actions, ended: await Promise.all(steps), held: service.held(), pullRequest, changes: service.changes }
}

describe('a pull request whose events are handled in any order', () => {
  it.each(Array.from({ length: LIVES }, (_, seed) => seed))('ends as it should (seed %i)', async (seed) => {
    const { actions, ended, held, pullRequest, changes } = await live(seed)
    const last = held[0]?.revisions.at(-1)
    const final = held.map(({ name, goingFor }) => ({ name, goingFor, status: last?.status, commit: last?.commit }))
    const head = { name: 'agent-pr-7', goingFor: undefined, status: 'DEPLOYED', commit: pullRequest.headSha }
    // Nothing but the ends that have a true story: what a step made serves, was replaced, or was removed.
    const odd = ended.filter((line) => !/: (deployed|removed|skipped|E_SUPERSEDED: .*)$/s.test(line))
    // What happened goes with it, so that a failing life can be understood.
    const story = { actions, ended, changes }
    expect({ final, odd, story }).toEqual({ final: pullRequest.state === 'closed' ? [] : [head], odd: [], story })
  })
})
