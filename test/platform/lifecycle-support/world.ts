import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { sql } from 'kysely'
import { createAgentHost } from '../../../src/platform/agents/host.ts'
import { createRetirement } from '../../../src/platform/agents/retirement.ts'
import { createAgentRoutes } from '../../../src/platform/agents/routes.ts'
import { createSupervisor } from '../../../src/platform/agents/supervisor.ts'
import { buildAgain, buildNext } from '../../../src/platform/control-plane/lifecycle/build-worker.ts'
import { removeDeleted } from '../../../src/platform/control-plane/lifecycle/deletions.ts'
import { deployNext } from '../../../src/platform/control-plane/lifecycle/deploy-worker.ts'
import { reclaimRevisions } from '../../../src/platform/control-plane/lifecycle/lease.ts'
import { provisionNext } from '../../../src/platform/control-plane/lifecycle/provision.ts'
import type { Hands } from '../../../src/platform/control-plane/lifecycle/work.ts'
import { availabilityOf } from '../../../src/platform/control-plane/runtimes/availability.ts'
import { createNoRuntime } from '../../../src/platform/control-plane/runtimes/no-runtime.ts'
import {
  type AgentProcess,
  type BuildStart,
  type ProcessExit,
  type Runtime,
  StartFailure,
} from '../../../src/platform/control-plane/runtimes/runtime.ts'
import { BuildFailure, type BuildRequest, type BuiltAgent } from '../../../src/platform/control-plane/sources/build.ts'
import type { BuildEffects } from '../../../src/platform/control-plane/sources/source.ts'
import { connectDatabase } from '../../../src/platform/database/connect.ts'
import type { Database } from '../../../src/platform/database/schema.ts'
import { createSecretBox } from '../../../src/platform/secrets.ts'
import { SILENT } from '../support/database.ts'

/** A build or a start that has begun and waits for the test to say how it ends. */
interface Pending {
  readonly kind: 'build' | 'start'
  readonly succeed: () => void
  readonly fail: () => void
  /** As when its process dies: the work never says anything again. */
  readonly vanish: () => void
}

/** A process of a fake runtime. */
interface FakeProcess {
  readonly revisionId: string
  readonly die: () => void
}

/** The queue part of a platform whose builds and starts are fakes in the test's hand, on a real database. */
export interface FakePlatform {
  readonly pending: Pending[]
  readonly living: Map<string, FakeProcess>
  /** Each begins one round of a duty; a round that has begun a build or a start goes on by itself. */
  readonly rounds: Readonly<Record<RoundName, () => Promise<unknown>>>
  /** SIGTERM: what is in hand is handed back. */
  stop(): Promise<void>
  /** kill -9: from now on nothing of it reaches the database, and its processes are gone. */
  kill(): Promise<void>
}

export type RoundName = 'provision' | 'build' | 'deploy' | 'supervise' | 'retire' | 'delete' | 'reclaim' | 'beat'

export const secretBox = createSecretBox(Buffer.alloc(32, 1))

export interface FakePlatformOptions {
  /** A connection that outlives the platform. */
  readonly outside: Database
  readonly url: string
  readonly nodeId: string
  readonly builds: string
}

/** Starts one on the node's name, and takes back what an earlier one of that name had in hand. */
export async function startFakePlatform({ outside, url, nodeId, builds }: FakePlatformOptions): Promise<FakePlatform> {
  const name = `fake-${randomUUID()}`
  const db = await connectDatabase({ url: `${url}?application_name=${name}`, log: SILENT })
  const killed = Promise.withResolvers<void>()
  const pending: Pending[] = []
  const living = new Map<string, FakeProcess>()
  const stopping = new AbortController()
  const hands: Hands = { inHand: new Set(), stopping: stopping.signal }
  const working = new Set<Promise<unknown>>()
  let begun: () => void = () => undefined

  const begin = <T>(kind: Pending['kind'], signal: AbortSignal, success: () => T, failure: () => Error) =>
    new Promise<T>((resolve, reject) => {
      const leave = () => pending.splice(pending.indexOf(one), 1)
      const one: Pending = {
        kind,
        succeed: () => (leave(), resolve(success())),
        fail: () => (leave(), reject(failure())),
        vanish: () => (leave(), reject(new Error('killed'))),
      }
      pending.push(one)
      signal.addEventListener('abort', () => pending.includes(one) && (leave(), reject(signal.reason as Error)), { once: true })
      begun()
    })
  const build = (request: BuildRequest, { signal }: BuildEffects) =>
    begin(
      'build',
      signal,
      () => {
        const directory = path.join(request.directory, 'checkout')
        mkdirSync(directory, { recursive: true })
        return { ...BUILT, directory, commitSha: (request.source as { commit?: string }).commit ?? `${randomUUID()}` }
      },
      () => new BuildFailure('npm ci exited with code 1'),
    )
  const runtime: Runtime<BuildStart> = {
    unavailable: async () => null,
    start: ({ revisionId }, { signal }) =>
      begin(
        'start',
        signal,
        () => fakeProcess(living, revisionId),
        () => new StartFailure('it exited with code 1'),
      ),
    endStray: async () => false,
    list: async () => [],
  }
  const runtimes = { git_host: runtime, external_docker: createNoRuntime('there is no container host') }
  const host = createAgentHost({ db, runtimes, secretBox, nodeId, builds, log: SILENT })
  const options = {
    db,
    secretBox,
    log: SILENT,
    nodeId,
    builds,
    npmCache: builds,
    limitMs: 60_000,
    build,
    tokenFor: () => undefined,
    hands,
  }
  const supervisor = createSupervisor({
    db,
    host,
    nodeId,
    startLimitMs: 60_000,
    signal: stopping.signal,
    buildAgain: (work) => buildAgain(options, work),
    log: SILENT,
  })
  const routes = createAgentRoutes()
  const retirement = createRetirement({ db, host, routes, drainLimitMs: 1, deletedLimitMs: 1, log: SILENT })

  /** Until the round is over or has begun what the test has to end. */
  const round = (run: () => Promise<unknown>) => async () => {
    const beginning = new Promise<void>((resolve) => {
      const before = begun
      begun = () => (before(), resolve())
    })
    const running = run()
    const settled = running.catch(() => undefined)
    working.add(settled)
    void settled.finally(() => working.delete(settled))
    await Promise.race([running, beginning, killed.promise])
  }
  await host.clearStrays()
  await reclaimRevisions(db, { deadOwner: nodeId })
  return {
    pending,
    living,
    rounds: {
      provision: round(() => provisionNext(db, availabilityOf(runtimes))),
      build: round(() => buildNext(options)),
      deploy: round(() => deployNext({ db, host, log: SILENT, nodeId, limitMs: 60_000, hands, onSwap: async () => undefined })),
      supervise: round(() => supervisor.round()),
      retire: round(() => retirement.round()),
      delete: round(() => removeDeleted({ db, builds, log: SILENT })),
      reclaim: round(() => reclaimRevisions(db)),
      beat: round(() => host.beat()),
    },
    stop: async () => {
      stopping.abort()
      await Promise.all(working)
      for (const agent of host.all()) await host.end(agent, { graceMs: 0 })
      await db.destroy()
    },
    kill: async () => {
      killed.resolve()
      void db.destroy()
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name}`.execute(outside)
      for (const one of pending.slice()) one.vanish()
      living.clear()
    },
  }
}

const BUILT: BuiltAgent = {
  commitSha: '',
  directory: '',
  configPath: 'langgraph.json',
  graphs: { agent: './agent.mjs:graph' },
  env: {},
  language: 'js',
  home: '/nonexistent',
  stateDirectory: '/nonexistent',
  server: {},
}

function fakeProcess(living: Map<string, FakeProcess>, revisionId: string): AgentProcess {
  const id = randomUUID()
  const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>()
  const end = (exit: ProcessExit) => {
    living.delete(id)
    resolve(exit)
  }
  living.set(id, { revisionId, die: () => end({ code: null, signal: 'SIGSEGV' }) })
  return {
    address: { host: '127.0.0.1', port: 1024 + (living.size % 60_000) },
    reference: `fake:${id}`,
    exited,
    stop: async () => end({ code: 0, signal: null }),
  }
}

/** Removes every deployment with all that belongs to it, as between two tests. For so few rows `truncate` takes forty times as long. */
export async function clear(db: Database, builds: string): Promise<void> {
  await db.deleteFrom('deployments').execute()
  await db.deleteFrom('tracing_projects').execute()
  rmSync(builds, { recursive: true, force: true })
  mkdirSync(builds, { recursive: true })
}
