import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Claim as RunClaim, claimRun, renewLease } from '../../../src/platform/bulk-export/work/lease.ts'
import { type Claim, claimRevision, heartbeat } from '../../../src/platform/control-plane/lifecycle/lease.ts'
import { createMembership, type Membership } from '../../../src/platform/nodes/membership.ts'
import { takeOver } from '../../../src/platform/nodes/take-over.ts'
import { setExportScene } from '../bulk-export/support/scene.ts'
import type { ExportWorld } from '../bulk-export/support/world.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { makeDeployment, makeRevision } from '../lifecycle-support/rows.ts'
import { SILENT } from '../support/database.ts'
import { meet, waitingForLocks } from '../support/lock-order.ts'
import { until } from '../support/processes.ts'

const scene = setExportScene()
let world: ExportWorld

beforeEach(async (context) => {
  if (CLUSTERED) context.skip('its nodes are rows: processes would judge them')
  const { db } = scene.database
  for (const table of ['nodes', 'deployments'] as const) await db.deleteFrom(table).execute()
  world = await scene.makeWorld()
})

const member = (id: string) => createMembership(scene.database.db, { id, role: 'queue', url: null, keyNames: [] })

/** A node that may judge others by its own clock, which stands still. */
async function judge(): Promise<Membership> {
  let now = 0
  const me = { id: 'me', role: 'queue', url: null, keyNames: [] } as const
  const membership = createMembership(scene.database.db, me, { monotonic: () => now })
  for (; now <= 10_000; now += 2000) await membership.beat()
  now -= 2000
  return membership
}

/** What a node has in hand of each kind. */
interface Hands {
  readonly revision: Claim
  readonly run: RunClaim
  readonly agent: string
}

/** A node with its hands full that has been silent for a minute. */
async function silentNode(id: string): Promise<Hands> {
  const { db } = scene.database
  await member(id).beat()
  const ago = sql<Date>`clock_timestamp() - interval '1 minute'`
  await db.updateTable('nodes').set({ seen_at: ago }).where('id', '=', id).execute()
  const deploymentId = await makeDeployment(db, world.workspace.id)
  await makeRevision(db, deploymentId, { status: 'AWAITING_BUILD' })
  const revision = (await claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: id })) as Claim
  await world.createExport()
  const run = (await claimRun({ db, clock: world.clock, settings: world.settings, owner: id })) as RunClaim
  const agent = randomUUID()
  const place = { host: null, port: null, reference: null }
  const row = {
    id: agent,
    deployment_id: deploymentId,
    revision_id: revision.id,
    node_id: id,
    state: 'serving',
    ...place,
  } as const
  await db.insertInto('agents').values(row).execute()
  return { revision, run, agent }
}

/** What a node still has of what it had in hand. */
async function left(hands: Hands): Promise<{ revision: boolean; run: boolean; agent: boolean }> {
  const { db } = scene.database
  const agents = await db.selectFrom('agents').select('id').where('id', '=', hands.agent).execute()
  return {
    revision: (await heartbeat(db, hands.revision)) === 'go on',
    run: await renewLease(db, hands.run, world.settings),
    agent: agents.length === 1,
  }
}

const nodes = async () => (await scene.database.db.selectFrom('nodes').select('id').orderBy('id').execute()).map(({ id }) => id)
const ALL = { revision: true, run: true, agent: true }
const NOTHING = { revision: false, run: false, agent: false }

const take = (membership: Pick<Membership, 'gone'>) =>
  takeOver({
    db: scene.database.db,
    membership,
    clock: world.clock,
    exportSettings: world.settings,
    log: SILENT,
  })

/** A judge that is kept from its second question on, while something happens. */
function whenAskedAgain(membership: Membership, happens: () => Promise<unknown>): Pick<Membership, 'gone'> {
  let asked = 0
  return {
    gone: async () => {
      asked += 1
      if (asked === 2) await happens()
      return membership.gone()
    },
  }
}

describe('what a node had in hand', () => {
  test('waits for another one when the node is gone, and the node with it', async () => {
    const { db } = scene.database
    const hands = await silentNode('gone')
    expect(await take(await judge())).toBe(1)
    expect(await left(hands)).toEqual(NOTHING)
    expect(await nodes()).toEqual(['me'])
    const next = await claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: 'next' })
    expect(next).toMatchObject({ id: hands.revision.id, losses: 1 })
    const run = await claimRun({ db, clock: world.clock, settings: world.settings, owner: 'next' })
    expect(run?.run).toMatchObject({ id: hands.run.run.id, losses: 1 })
  })

  test('stays with it when it comes back after the leader has looked who is gone', async () => {
    const first = await silentNode('first')
    const back = await silentNode('second')
    const membership = await judge()
    let looked = false
    const gone = async () => {
      const ids = await membership.gone()
      if (!looked) await member('second').beat()
      looked = true
      return ids
    }
    expect(await take({ gone })).toBe(1)
    expect(await left(first)).toEqual(NOTHING)
    expect(await left(back)).toEqual(ALL)
    expect(await nodes()).toEqual(['me', 'second'])
  })

  test('is lost before the node comes back, or not at all: what it takes up from then on stays with it', async () => {
    const { db } = scene.database
    const before = await silentNode('back')
    let back = Promise.resolve()
    const membership = whenAskedAgain(await judge(), async () => {
      back = member('back').beat()
      await until(async () => (await waitingForLocks(db)) === 1)
    })
    expect(await take(membership)).toBe(1)
    await back
    expect(await left(before)).toEqual(NOTHING)
    expect(await nodes()).toEqual(['back', 'me'])
    await makeRevision(db, await makeDeployment(db, world.workspace.id), { status: 'AWAITING_BUILD' })
    const after = (await claimRevision(db, { from: 'AWAITING_BUILD', to: 'BUILDING', owner: 'back' })) as Claim
    expect(await take(await judge())).toBe(0)
    expect(await heartbeat(db, after)).toBe('go on')
  })

  test.each(['revision', 'export run'] as const)('is locked in the order of all others: %s', async (kind) => {
    const { db } = scene.database
    const { revision, run } = await silentNode('gone')
    const membership = await judge()
    const above = kind === 'revision' ? 'deployments' : 'bulk_exports'
    const aboveId = kind === 'revision' ? revision.deployment_id : run.run.export_id
    const table = kind === 'revision' ? 'revisions' : 'bulk_export_runs'
    const id = kind === 'revision' ? revision.id : run.run.id
    const token = kind === 'revision' ? revision.lease_token : run.token
    const taking = meet(db, {
      first: (other) => other.selectFrom(above).select('id').where('id', '=', aboveId).forUpdate().execute(),
      act: () => take(membership),
      second: async (other) => {
        const held = await other.selectFrom(table).select('lease_token').where('id', '=', id).forUpdate().execute()
        expect(held).toEqual([{ lease_token: token }])
      },
    })
    expect(await taking).toBe(1)
  })

  test('stays with it when the leader stops in the middle, and the node comes back meanwhile', async () => {
    const back = await silentNode('back')
    const membership = whenAskedAgain(await judge(), () => sleep(6000))
    const taking = take(membership)
    taking.catch(() => undefined)
    await sleep(500)
    const began = performance.now()
    await member('back').beat()
    expect(performance.now() - began, 'it waits for the leader').toBeGreaterThan(1000)
    await expect(taking).rejects.toThrow(/connection|terminat/i)
    expect(await left(back)).toEqual(ALL)
    expect(await nodes()).toEqual(['back', 'me'])
  })
})
