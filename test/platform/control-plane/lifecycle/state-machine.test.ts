import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deploymentCreateSchema } from '../../../../src/contract/deployment.ts'
import { isFinalRevisionStatus, type RevisionStatus } from '../../../../src/contract/status.ts'
import {
  changeDeployment,
  createDeployment,
  deleteDeployment,
  redeployRevision,
} from '../../../../src/platform/control-plane/deployments.ts'
import { MAX_LOSSES } from '../../../../src/platform/control-plane/lifecycle/lease.ts'
import { isTransition, isWorkedOn, TRANSITIONS, UNFINISHED } from '../../../../src/platform/control-plane/lifecycle/states.ts'
import { interruptRevision } from '../../../../src/platform/control-plane/revisions.ts'
import { HttpProblem } from '../../../../src/platform/http/problem.ts'
import { clear, type FakePlatform, secretBox, startFakePlatform } from '../../lifecycle-support/world.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
let workspaceId: string
const nodeId = 'node-1'

beforeAll(async () => {
  database = await startTestDatabase()
  workspaceId = (await createWorkspace(database.db)).id
})

afterAll(() => database.stop())

/** What a user, a duty or misfortune does. Numbers pick one of what there is at that moment. */
type Command =
  | { readonly do: 'create' }
  | { readonly do: 'patch'; readonly pick: number; readonly times: number }
  | { readonly do: 'interrupt' | 'redeploy' | 'delete' | 'lose build' | 'agent dies'; readonly pick: number }
  | { readonly do: 'round'; readonly of: keyof FakePlatform['rounds'] }
  | { readonly do: 'finish'; readonly pick: number; readonly well: boolean }
  | { readonly do: 'kill' | 'restart' | 'leases expire' }

const pick = fc.nat({ max: 1000 })
const commands: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Command>({ do: 'create' }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('patch' as const), pick, times: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('interrupt' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('redeploy' as const), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'lose build' as const, 'agent dies' as const), pick }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      do: fc.constant('round' as const),
      of: fc.constantFrom(
        'provision',
        'provision',
        'build',
        'build',
        'deploy',
        'deploy',
        'supervise',
        'retire',
        'delete',
        'reclaim',
        'beat',
      ),
    }),
  },
  { weight: 9, arbitrary: fc.record({ do: fc.constant('finish' as const), pick, well: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constantFrom<Command>({ do: 'kill' }, { do: 'restart' }, { do: 'leases expire' }) },
)

test('no sequence of commands, faults and restarts breaks the state machine', { timeout: 120_000 }, async () => {
  // What stands in one inner list happens at the same time.
  const story = fc.array(fc.array(commands, { minLength: 1, maxLength: 4 }), { minLength: 5, maxLength: 45 })
  await fc.assert(
    fc.asyncProperty(story, async (story) => {
      const run = await beginRun()
      try {
        for (const together of story) await Promise.all(together.map((command) => run.perform(command)))
        await run.finishEverything()
        await judge(run)
      } finally {
        await run.end()
      }
    }),
    // So many stories, or as many as twenty seconds allow on a slow machine. A failure prints its seed.
    {
      numRuns: Number(process.env['STATE_MACHINE_RUNS'] ?? 30),
      interruptAfterTimeLimit: 20_000,
      endOnFailure: Boolean(process.env['CI']),
    },
  )
})

async function beginRun() {
  const { db, url } = database
  const builds = path.join(database.directory, 'builds')
  await clear(db, builds)
  const context = { db, secretBox, offering: 'any' as const }
  const interrupted = new Set<string>()
  let platform = await startFakePlatform({ outside: db, url, nodeId, builds })
  let changing: Promise<unknown> = Promise.resolve()

  const anyDeployment = async (number: number) => {
    const rows = await db.selectFrom('deployments').select('id').orderBy('id').execute()
    return rows[number % rows.length]?.id
  }
  const anyRevision = async (number: number, statuses: readonly RevisionStatus[]) => {
    const rows = await db
      .selectFrom('revisions')
      .select(['id', 'deployment_id'])
      .where('status', 'in', statuses)
      .orderBy('number')
      .execute()
    return rows[number % rows.length]
  }
  const patch = (deploymentId: string) =>
    changeDeployment(context, {
      workspaceId,
      deploymentId,
      body: { source_revision_config: { repo_ref: 'main' } },
      alwaysRevision: true,
      reason: 'a change',
    })
  /** Stops and starts follow one another. */
  const replace = (end: 'kill' | 'stop') => {
    changing = changing.then(async () => {
      await platform[end]()
      platform = await startFakePlatform({ outside: db, url, nodeId, builds })
    })
    return changing
  }

  const act = async (command: Command): Promise<unknown> => {
    switch (command.do) {
      case 'create':
        return createDeployment(context, { workspaceId, body: aDeployment() })
      case 'patch': {
        const id = await anyDeployment(command.pick)
        return id && Promise.all(Array.from({ length: command.times }, () => ignoringRefusals(patch(id))))
      }
      case 'interrupt': {
        const revision = await anyRevision(command.pick, UNFINISHED)
        if (revision === undefined) return null
        await interruptRevision(db, { deploymentId: revision.deployment_id, revisionId: revision.id })
        return interrupted.add(revision.id)
      }
      case 'redeploy': {
        const revision = await anyRevision(command.pick, ['DEPLOYED'])
        return (
          revision && redeployRevision(context, { workspaceId, deploymentId: revision.deployment_id, revisionId: revision.id })
        )
      }
      case 'delete': {
        const id = await anyDeployment(command.pick)
        return id && deleteDeployment(db, { workspaceId, deploymentId: id, deleteTracingProject: true })
      }
      case 'lose build': {
        const revision = await anyRevision(command.pick, ['DEPLOYED', 'AWAITING_DEPLOY', 'DEPLOYING'])
        return revision && rmSync(path.join(builds, revision.id), { recursive: true, force: true })
      }
      case 'agent dies': {
        const all = [...platform.living.values()]
        return all[command.pick % all.length]?.die()
      }
      case 'round':
        return duringChanges(platform.rounds[command.of]())
      case 'finish': {
        const one = platform.pending[command.pick % platform.pending.length]
        return command.well ? one?.succeed() : one?.fail()
      }
      case 'kill':
        return replace('kill')
      case 'restart':
        return replace('stop')
      case 'leases expire':
        // Locked in one order: several of these may happen at the same time.
        return db
          .updateTable('revisions')
          .set({ lease_expires_at: new Date(0) })
          .where(
            'id',
            'in',
            db.selectFrom('revisions').select('id').where('lease_expires_at', 'is not', null).orderBy('id').forUpdate(),
          )
          .execute()
    }
  }
  /** A round that a kill has cut off fails, and should. */
  const duringChanges = async (round: Promise<unknown>) => {
    const at = platform
    await round.catch((error: Error) => {
      if (at === platform && !/destroyed|Cannot use a pool|terminat/.test(error.message)) throw error
    })
  }

  return {
    builds,
    interrupted,
    living: () => [...platform.living.values()],
    perform: (command: Command) => ignoringRefusals(act(command)),
    /** As the duties do by themselves, until nothing is left to do; from now on everything succeeds. */
    finishEverything: async () => {
      await changing
      // Not the backoff of the supervisor is tested here: a fresh one has none.
      await replace('stop')
      for (let round = 0; round < 400; round += 1) {
        for (const name of ['provision', 'build', 'deploy', 'supervise', 'retire', 'delete', 'reclaim', 'beat'] as const) {
          await platform.rounds[name]()
          for (const one of platform.pending.slice()) one.succeed()
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
        if (await isQuiet()) return
      }
      throw new Error('the queue stalled: something was still unfinished after 400 rounds')
    },
    end: async () => {
      await changing
      await platform.kill()
    },
  }

  async function isQuiet(): Promise<boolean> {
    if (platform.pending.length > 0) return false
    const unfinished = await db.selectFrom('revisions').select('id').where('status', 'in', UNFINISHED).executeTakeFirst()
    const going = await db.selectFrom('deployments').select('id').where('status', '=', 'AWAITING_DELETE').executeTakeFirst()
    const draining = await db.selectFrom('agents').select('id').where('state', '!=', 'serving').executeTakeFirst()
    const active = await db.selectFrom('deployments').select('id').where('active_revision_id', 'is not', null).execute()
    return unfinished === undefined && going === undefined && draining === undefined && active.length === platform.living.size
  }
}

async function ignoringRefusals(action: Promise<unknown>): Promise<void> {
  try {
    await action
  } catch (error) {
    if (!(error instanceof HttpProblem)) throw error
  }
}

function aDeployment() {
  return deploymentCreateSchema.parse({
    name: `agent-${randomUUID().slice(0, 12)}`,
    source: 'git_host',
    source_config: { repo_url: 'https://git.example.com/acme/agent', build_on_push: false },
    source_revision_config: { repo_ref: 'main' },
    secrets: [],
  })
}

/** Every rule of the lifecycle, against the history that the database holds. */
async function judge({
  interrupted,
  living,
}: {
  interrupted: ReadonlySet<string>
  living: () => { revisionId: string }[]
}): Promise<void> {
  const { db } = database
  const deployments = await db.selectFrom('deployments').selectAll().execute()
  const revisions = await db.selectFrom('revisions').selectAll().orderBy('number').execute()
  const byId = new Map(revisions.map((revision) => [revision.id, revision]))
  const steps = await db.selectFrom('revision_transitions').selectAll().orderBy('id').execute()
  const at = new Map<string, RevisionStatus>()
  const lastDeployed = new Map<string, string>()

  for (const { revision_id: id, from_status: from, to_status: to, reason } of steps) {
    const revision = byId.get(id)!
    expect(from, 'a step begins where the one before ended').toBe(at.get(id) ?? null)
    expect(reason).not.toBe('')
    if (from === null) expect(to).toBe('CREATING')
    else expect(isTransition({ from, to, source: revision.source }), `${from} to ${to} is in the table`).toBe(true)
    const others = revisions.filter((other) => other.deployment_id === revision.deployment_id && other.id !== id)
    if (from === 'QUEUED' && isWorkedOn(to)) {
      for (const other of others) {
        expect(at.get(other.id) === undefined || !isWorkedOn(at.get(other.id)!), 'one is worked on at a time').toBe(true)
        expect(at.get(other.id), 'the newest wins, the others that wait are superseded').not.toBe('QUEUED')
      }
    }
    if (to === 'SKIPPED') {
      expect(others.some((other) => at.get(other.id) === 'QUEUED' && Number(other.number) > Number(revision.number))).toBe(true)
    }
    if (to === 'DEPLOYED') lastDeployed.set(revision.deployment_id, id)
    at.set(id, to)
  }
  for (const revision of revisions) {
    expect(at.get(revision.id), 'the history ends at the status').toBe(revision.status)
    expect(isFinalRevisionStatus(revision.status), `${revision.id} has ended, not ${revision.status}`).toBe(true)
    expect(revision.status_message).not.toBeNull()
    expect(revision.lease_token).toBeNull()
    expect(revision.losses).toBeLessThanOrEqual(MAX_LOSSES + 1)
    if (interrupted.has(revision.id)) expect(revision.status, 'an acknowledged interruption counts').toBe('INTERRUPTED')
  }
  for (const deployment of deployments) {
    expect(deployment.active_revision_id, 'active is what was deployed last').toBe(lastDeployed.get(deployment.id) ?? null)
  }
  const serving = await db.selectFrom('agents').selectAll().execute()
  const active = deployments.flatMap((deployment) => deployment.active_revision_id ?? []).toSorted()
  expect(serving.map((agent) => agent.revision_id).toSorted(), 'each active revision is served once, and nothing else').toEqual(
    active,
  )
  expect(
    living()
      .map((process) => process.revisionId)
      .toSorted(),
    'no process is left over',
  ).toEqual(active)
}

test('the table holds no step twice, and every status but the last ones leads on', () => {
  const pairs = TRANSITIONS.map(({ from, to }) => `${from}>${to}`)
  expect(new Set(pairs).size).toBe(pairs.length)
  for (const { to } of TRANSITIONS) {
    expect(isFinalRevisionStatus(to) || TRANSITIONS.some(({ from }) => from === to), `${to} leads on or is an end`).toBe(true)
  }
  for (const { from } of TRANSITIONS) expect(isFinalRevisionStatus(from)).toBe(false)
})
