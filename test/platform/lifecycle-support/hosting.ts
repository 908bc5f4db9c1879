import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { createAgentHost } from '../../../src/platform/agents/host.ts'
import { createNoRuntime } from '../../../src/platform/control-plane/runtimes/no-runtime.ts'
import type { AgentProcess, BuildStart, ProcessExit, Runtime } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import type { Database } from '../../../src/platform/database/schema.ts'
import { createSecretBox } from '../../../src/platform/secrets.ts'
import { SILENT } from '../support/database.ts'
import { makeRevision } from './rows.ts'

export interface FakeAgent extends AgentProcess {
  readonly request: BuildStart
  die(): void
}

/** A runtime whose agents are there at once. `before` runs first and may throw, wait, or look at the signal. */
export function createFakeRuntime(before: (signal: AbortSignal) => Promise<void> = async () => undefined) {
  const living = new Set<FakeAgent>()
  const strays: string[] = []
  const runtime: Runtime<BuildStart> = {
    unavailable: async () => null,
    start: async (request, { signal }) => {
      await before(signal)
      const { promise, resolve } = Promise.withResolvers<ProcessExit>()
      const agent: FakeAgent = {
        request,
        address: { host: '127.0.0.1', port: 4000 + living.size },
        reference: `fake:${4000 + living.size}`,
        exited: promise,
        die: () => {
          living.delete(agent)
          resolve({ code: 1, signal: null })
        },
        stop: async () => agent.die(),
      }
      living.add(agent)
      return agent
    },
    endStray: async (reference) => {
      strays.push(reference)
      return true
    },
    list: async () => [],
  }
  return { runtime, living, strays }
}

export function createHost(
  db: Database,
  { runtime, builds, nodeId = 'a' }: { runtime: Runtime<BuildStart>; builds: string; nodeId?: string },
) {
  return createAgentHost({
    db,
    runtimes: { git_host: runtime, external_docker: createNoRuntime('no') },
    secretBox: createSecretBox(Buffer.alloc(32, 1)),
    nodeId,
    builds,
    log: SILENT,
  })
}

/** A revision with a build on the disk. */
export async function makeBuilt(
  db: Database,
  { deploymentId, builds, status }: { deploymentId: string; builds: string; status: 'AWAITING_DEPLOY' | 'DEPLOYED' },
): Promise<{ id: string; directory: string }> {
  const id = await makeRevision(db, deploymentId, { status, repo_commit_sha: 'c'.repeat(40) })
  const directory = path.join(builds, id, 'attempt', 'checkout')
  mkdirSync(directory, { recursive: true })
  const rest = { configPath: 'langgraph.json', graphs: {}, env: {}, language: 'js', home: '', stateDirectory: '', server: {} }
  const built = { commitSha: 'c'.repeat(40), directory, ...rest }
  await db
    .updateTable('revisions')
    .set({ built: JSON.stringify(built) })
    .where('id', '=', id)
    .execute()
  if (status === 'DEPLOYED')
    await db.updateTable('deployments').set({ active_revision_id: id }).where('id', '=', deploymentId).execute()
  return { id, directory }
}

export function agentsOf(db: Database, deploymentId: string): Promise<{ revision_id: string; state: string }[]> {
  return db
    .selectFrom('agents')
    .select(['revision_id', 'state'])
    .where('deployment_id', '=', deploymentId)
    .orderBy('created_at')
    .execute()
}
