import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { sql } from 'kysely'
import { agentSecrets, platformEnvironment, tracesElsewhere, tracingEnvironment } from '../control-plane/environment.ts'
import { openRevisionLog, type StoredLog } from '../control-plane/logs.ts'
import { type AgentProcess, type Runtimes, type StartEffects, StartFailure } from '../control-plane/runtimes/runtime.ts'
import type { BuiltAgent } from '../control-plane/sources/build.ts'
import type { Source } from '../../contract/revision.ts'
import { announce } from '../database/notifications.ts'
import type { Database, DatabaseTransaction, DeploymentRow, RevisionRow } from '../database/schema.ts'
import type { Log } from '../log.ts'
import type { SecretBox } from '../secrets.ts'
import { issueAgentKey } from '../workspaces/agent-keys.ts'
import { lockAgents } from './lock-agents.ts'

/** After this long without a sign of its node an agent counts as gone. Milliseconds. */
export const AGENT_SILENT_MS = 30_000

/** Another node, or this one, runs the revision already. */
export class AlreadyRunning extends Error {}

export interface AgentHostOptions {
  readonly db: Database
  readonly runtimes: Runtimes
  readonly secretBox: SecretBox
  readonly nodeId: string
  /** Folder of all builds; what an agent stores lies in its revision's. */
  readonly builds: string
  /** Where the agents of a source send their traces; null: nowhere. */
  readonly traceUrl?: (source: Source) => Promise<string | null>
  readonly log: Log
}

/** An agent that runs on this node. */
export interface HostedAgent {
  readonly id: string
  readonly deploymentId: string
  readonly revisionId: string
  readonly process: AgentProcess
}

/** The agents of this node: every process has a row in the database from before it starts until after it has ended. */
export interface AgentHost {
  /** Starts the agent of a built revision and resolves when it answers; nothing is left running otherwise. */
  launch(options: LaunchOptions): Promise<HostedAgent>
  find(agentId: string): HostedAgent | undefined
  all(): HostedAgent[]
  /** Ends the process and removes its row. */
  end(agent: HostedAgent, options: { graceMs: number }): Promise<void>
  /** Says in the database that this node is alive, and brings its rows and its processes into line. */
  beat(): Promise<void>
  /** At the start: ends what an earlier platform of this data directory left behind, and forgets it. */
  clearStrays(): Promise<void>
  /** Ends what runs somewhere and has no row: a platform was killed while it started it, or another node has replaced it. */
  sweepStrays(): Promise<void>
}

export interface LaunchOptions {
  readonly deployment: DeploymentRow
  readonly revision: RevisionRow
  readonly signal: AbortSignal
  /** Until the agent must answer. */
  readonly timeoutMs: number
  /** Makes what is to be started, when it is not there; by then no other node starts it. Default: what the revision's build made. */
  readonly prepare?: () => Promise<BuiltAgent>
}

/** The start of an agent whose deployment runs an image. */
interface ImageLaunch extends Pick<LaunchOptions, 'deployment' | 'revision'> {
  readonly id: string
  readonly env: Readonly<Record<string, string>>
  readonly effects: StartEffects
}

export function createAgentHost({ db, runtimes, secretBox, nodeId, builds, traceUrl, log }: AgentHostOptions): AgentHost {
  const launching = new Set<string>()
  const running = new Map<string, HostedAgent>()
  const ending = new Set<string>()
  const logs = new Map<string, StoredLog>()

  const all = Object.values(runtimes)

  const endStray = async (reference: string) => {
    try {
      // Each knows its own references.
      const ended = await Promise.all(all.map((runtime) => runtime.endStray(reference)))
      if (ended.includes(true)) log.info({ reference }, 'ended an agent server that was left behind')
    } catch (error) {
      log.warn({ reference, error: (error as Error).message }, 'an agent server that was left behind could not be ended yet')
    }
  }

  const forget = async (agentId: string) => {
    running.delete(agentId)
    await db.deleteFrom('agents').where('id', '=', agentId).execute()
    await announce(db, 'agents')
  }

  /** A row that cannot be removed now is removed by a later beat. */
  const forgetLater = (agentId: string) =>
    forget(agentId).catch((error: Error) => log.warn({ error: error.message }, 'an ended agent could not be removed yet'))

  const watch = async (agent: HostedAgent) => {
    const exit = await agent.process.exited
    const lines = logs.get(agent.id)
    logs.delete(agent.id)
    if (!ending.delete(agent.id)) {
      lines?.write('ERROR', `the agent server ended by itself (exit code ${exit.code}, signal ${exit.signal})`)
      log.warn({ revisionId: agent.revisionId, ...exit }, 'an agent server ended by itself')
      await forgetLater(agent.id)
    }
    await lines?.close()
  }

  const end = async (agent: HostedAgent, { graceMs }: { graceMs: number }) => {
    ending.add(agent.id)
    await agent.process.stop({ graceMs }).catch((error: Error) => {
      // Its row goes all the same: what has none is looked for, and ended, as a stray.
      log.warn({ revisionId: agent.revisionId, error: error.message }, 'an agent server could not be ended; trying again')
    })
    await forgetLater(agent.id)
    ending.delete(agent.id)
  }

  const start = async (id: string, options: LaunchOptions): Promise<HostedAgent> => {
    const { deployment, revision, signal, timeoutMs } = options
    const secrets = agentSecrets(secretBox, revision)
    const lines = openRevisionLog(db, { revisionId: revision.id, type: 'deploy', secrets: Object.values(secrets), log })
    logs.set(id, lines)
    const url = traceUrl === undefined || tracesElsewhere(secrets) ? null : await traceUrl(revision.source)
    const tracing =
      url === null
        ? {}
        : tracingEnvironment({ url, key: await issueAgentKey(db, { workspaceId: deployment.workspace_id, agentId: id }) })
    const env = { ...tracing, ...secrets, ...platformEnvironment(deployment, revision) }
    const effects = { log: lines, signal, timeoutMs }
    const process =
      revision.source === 'external_docker'
        ? await startImage({ id, deployment, revision, env, effects })
        : await runtimes.git_host.start({ revisionId: revision.id, agent: await buildOf(options), env }, effects)
    const agent = { id, deploymentId: deployment.id, revisionId: revision.id, process }
    running.set(id, agent)
    void watch(agent)
    await db
      .updateTable('agents')
      .set({ ...process.address, reference: process.reference })
      .where('id', '=', id)
      .execute()
    return agent
  }

  const buildOf = async ({ revision, prepare }: LaunchOptions): Promise<BuiltAgent> => {
    const built = prepare === undefined ? revision.built : await prepare()
    if (built === null) throw new Error(`revision ${revision.id} has not been built`)
    // Its own, also when it shares a build with another revision: two agents must not write one state.
    const stateDirectory = path.join(builds, revision.id, 'state')
    await mkdir(stateDirectory, { recursive: true })
    return { ...built, stateDirectory }
  }

  const startImage = async ({ id, deployment, revision, env, effects }: ImageLaunch): Promise<AgentProcess> => {
    const imageUri = revision.image_uri ?? ''
    let noted: Promise<unknown> = Promise.resolve()
    const onImage = (exact: string) => {
      if (exact !== imageUri) noted = noteImage(revision.id, imageUri, exact)
    }
    const { resource_spec: resources, listener_config: listenerConfig } = deployment.source_config
    const request = {
      agentId: id,
      deploymentId: deployment.id,
      deploymentName: deployment.name,
      revisionId: revision.id,
      imageUri,
      resources,
      listenerConfig,
      env,
    }
    try {
      return await runtimes.external_docker.start(request, { ...effects, onImage })
    } finally {
      await noted
    }
  }

  /** A tag may name another image tomorrow: the revision keeps to the one that it began with. */
  const noteImage = (revisionId: string, before: string, exact: string) =>
    db
      .updateTable('revisions')
      .set({ image_uri: exact, updated_at: sql<Date>`clock_timestamp()` })
      .where('id', '=', revisionId)
      .where('image_uri', '=', before)
      .execute()
      .catch((error: Error) => log.warn({ revisionId, error: error.message }, 'the digest of an image could not be noted'))

  return {
    launch: async (options) => {
      const id = randomUUID()
      launching.add(id)
      try {
        await reserve(db, { id, deploymentId: options.deployment.id, revisionId: options.revision.id, nodeId })
        return await start(id, options)
      } catch (error) {
        const started = running.get(id)
        if (started !== undefined) await end(started, { graceMs: 0 })
        else if (!(error instanceof AlreadyRunning)) {
          await logs.get(id)?.close()
          logs.delete(id)
          await forgetLater(id)
        }
        throw error
      } finally {
        launching.delete(id)
      }
    },
    find: (agentId) => running.get(agentId),
    all: () => [...running.values()],
    end,
    beat: async () => {
      const known = [...launching, ...running.keys()]
      const rows = await db
        .updateTable('agents')
        .set({ seen_at: sql<Date>`now()` })
        .where('id', 'in', lockAgents(db).where('node_id', '=', nodeId))
        .returning('id')
        .execute()
      const stale = rows.map((row) => row.id).filter((id) => !known.includes(id) && !launching.has(id) && !running.has(id))
      if (stale.length > 0) {
        await db
          .deleteFrom('agents')
          .where('id', 'in', lockAgents(db).where('id', 'in', stale))
          .execute()
        await announce(db, 'agents')
      }
      // While this node slept, another one took it for dead and removed its rows: its agents serve nobody any more.
      const seen = new Set(rows.map((row) => row.id))
      for (const agent of running.values()) {
        if (seen.has(agent.id) || !known.includes(agent.id) || launching.has(agent.id) || ending.has(agent.id)) continue
        log.warn({ revisionId: agent.revisionId }, 'ending an agent server that another node has replaced')
        void end(agent, { graceMs: 0 })
      }
    },
    clearStrays: async () => {
      const rows = await db.selectFrom('agents').selectAll().where('node_id', '=', nodeId).execute()
      await Promise.all(
        rows.map(async ({ reference }) => {
          if (reference !== null) await endStray(reference)
        }),
      )
      await db
        .deleteFrom('agents')
        .where('id', 'in', lockAgents(db).where('node_id', '=', nodeId))
        .execute()
    },
    sweepStrays: async () => {
      // What runs first, then the rows: each agent has its row before it is started.
      const seen = (await Promise.all(all.map((runtime) => runtime.list()))).flat()
      if (seen.length === 0) return
      const ids = seen.map(({ agentId }) => agentId)
      const rows = await db.selectFrom('agents').select('id').where('id', 'in', ids).execute()
      const known = new Set([...rows.map(({ id }) => id), ...launching, ...running.keys()])
      for (const { agentId, reference } of seen) if (!known.has(agentId)) await endStray(reference)
    },
  }
}

/** The row comes first: a unique index lets only one process start a revision. */
async function reserve(
  db: Database,
  row: { id: string; deploymentId: string; revisionId: string; nodeId: string },
): Promise<void> {
  const reserved = await db
    .insertInto('agents')
    .values({
      id: row.id,
      deployment_id: row.deploymentId,
      revision_id: row.revisionId,
      node_id: row.nodeId,
      state: 'starting',
      host: null,
      port: null,
      reference: null,
    })
    .onConflict((conflict) => conflict.column('revision_id').where('state', 'in', ['starting', 'serving']).doNothing())
    .returning('id')
    .executeTakeFirst()
  if (reserved === undefined) throw new AlreadyRunning(`revision ${row.revisionId} runs already`)
}

/**
 * From the commit on, requests for the deployment go to this agent; the one before is to be drained.
 * @throws {StartFailure} when the agent has ended meanwhile: then the one before goes on serving.
 */
export async function makeServing(trx: DatabaseTransaction, agent: Pick<HostedAgent, 'id' | 'deploymentId'>): Promise<void> {
  await lockAgents(trx).where('deployment_id', '=', agent.deploymentId).execute()
  await trx
    .updateTable('agents')
    .set({ state: 'draining' })
    .where('deployment_id', '=', agent.deploymentId)
    .where('id', '!=', agent.id)
    .where('state', '=', 'serving')
    .execute()
  const serving = await trx
    .updateTable('agents')
    .set({ state: 'serving' })
    .where('id', '=', agent.id)
    .returning('id')
    .executeTakeFirst()
  if (serving === undefined) throw new StartFailure('The agent ended right after it had answered; its log tells why.')
  await announce(trx, 'agents')
}
