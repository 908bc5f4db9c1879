import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import type { Deployment } from '../../../src/contract/deployment.ts'
import type { Revision } from '../../../src/contract/revision.ts'
import { isFinalRevisionStatus } from '../../../src/contract/status.ts'
import { type AskPlatform, askPlatform } from '../support/ask-platform.ts'
import type { GitRepository } from '../support/git-repository.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
export const KEY = 'test-key-0123456789abcdef'

/** A real platform in a process of its own, as `npm run platform` starts it. */
export interface PlatformProcess {
  readonly url: string
  readonly pid: number
  /** What it has logged so far. */
  log(): string
  kill(): Promise<void>
  /** SIGTERM. @returns its exit code. */
  stop(): Promise<number | null>
  readonly ask: AskPlatform
}

export async function startPlatformProcess(dataDirectory: string, environment: Record<string, string> = {}): Promise<PlatformProcess> {
  const args = ['src/platform/main.ts', '--port', '0', '--data-dir', dataDirectory, '--json', '--api-key', KEY]
  const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const url = await readUrl(child, () => log)
  const end = async (signal: NodeJS.Signals) => {
    const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
    child.kill(signal)
    await exited
    return child.exitCode
  }
  return {
    url,
    pid: child.pid ?? 0,
    log: () => log,
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
    ask: askPlatform(url, KEY),
  }
}

async function readUrl(child: ChildProcess, log: () => string): Promise<string> {
  let out = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  while (!out.includes('\n')) {
    if (child.exitCode !== null) throw new Error(`the platform did not start: ${log()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return (JSON.parse(out) as { url: string }).url
}

/** Creates a deployment whose agent needs no install: its packages are the repository's own. */
export function createFast(
  platform: PlatformProcess,
  { name, repository, sourceConfig = {} }: { name: string; repository: GitRepository; sourceConfig?: Record<string, unknown> },
): Promise<Deployment> {
  return platform.ask<Deployment>('/v2/deployments', {
    method: 'POST',
    body: {
      name,
      source: 'git_host',
      source_config: { repo_url: pathToFileURL(repository.directory).href, build_on_push: false, install_command: 'sh install.sh', ...sourceConfig },
      source_revision_config: { repo_ref: 'main' },
      secrets: [],
    },
  })
}

export function patch(platform: PlatformProcess, deploymentId: string): Promise<Deployment> {
  return platform.ask<Deployment>(`/v2/deployments/${deploymentId}`, {
    method: 'PATCH',
    body: { source_revision_config: { repo_ref: 'main' } },
  })
}

export interface FastAgent {
  readonly version: string
  readonly loadMs?: number
  readonly installMs?: number
}

/** The repository of an agent that answers with its version, after as many milliseconds as the message says. */
export function fastAgent({ version, loadMs = 0, installMs = 0 }: FastAgent): Record<string, string> {
  return {
    'package.json': '{"name":"fast","version":"1.0.0","type":"module"}',
    'langgraph.json': '{"graphs":{"agent":"./agent.mjs:graph"}}',
    'install.sh': `set -e\nsleep ${installMs / 1000}\nln -sfn ${path.join(ROOT, 'node_modules')} node_modules\n`,
    'agent.mjs': `
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
await new Promise((resolve) => setTimeout(resolve, ${loadMs}))
const answer = async (state) => {
  await new Promise((resolve) => setTimeout(resolve, Number(state.messages.at(-1).content)))
  return { messages: [{ role: 'assistant', content: 'version ${version}' }] }
}
export const graph = new StateGraph(MessagesAnnotation).addNode('answer', answer)
  .addEdge('__start__', 'answer').addEdge('answer', '__end__').compile()
`,
  }
}

export function commitAgent(repository: GitRepository, options: FastAgent): string {
  return repository.commit(fastAgent(options), `version ${options.version}`)
}

/** Streams a run and returns everything that came. */
export async function run(platform: PlatformProcess, deployment: Deployment, { ms = 0 } = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(`${agentUrl(platform, deployment)}/runs/stream`, {
    method: 'POST',
    headers: { 'X-Api-Key': KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'agent', input: { messages: [{ role: 'user', content: String(ms) }] }, stream_mode: 'updates' }),
  })
  return { status: response.status, text: await response.text() }
}

/** The address of an agent now: the platform has another port after each start. */
export function agentUrl(platform: PlatformProcess, deployment: Deployment): string {
  return platform.url + new URL(deployment.url ?? '').pathname
}

export async function statusOf(platform: PlatformProcess, deployment: Deployment, revisionId = deployment.latest_revision_id): Promise<Revision> {
  return platform.ask<Revision>(`/v2/deployments/${deployment.id}/revisions/${revisionId}`)
}

/** Waits until the revision is in one of the statuses. */
export async function reach(
  platform: PlatformProcess,
  deployment: Deployment,
  statuses: readonly string[],
  { revisionId = deployment.latest_revision_id, timeoutMs = 60_000 }: { revisionId?: string | null; timeoutMs?: number } = {},
): Promise<Revision> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const revision = await statusOf(platform, deployment, revisionId)
    if (statuses.includes(revision.status)) return revision
    const seen = `${revision.status} ${(revision as { status_message?: string | null }).status_message ?? ''}`
    if (Date.now() > deadline || isFinalRevisionStatus(revision.status)) {
      throw new Error(`the revision did not become ${statuses.join(' or ')}: it is ${seen}\n${platform.log()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
}

/** Asks the embedded database of a running platform. */
export async function query<T extends pg.QueryResultRow>(dataDirectory: string, text: string, values: unknown[] = []): Promise<T[]> {
  const port = readFileSync(path.join(dataDirectory, 'database', 'postmaster.pid'), 'utf8').split('\n')[3]
  const password = readFileSync(path.join(dataDirectory, 'database.password'), 'utf8').trim()
  const client = new pg.Client({ host: '127.0.0.1', port: Number(port), user: 'platform', password, database: 'postgres' })
  await client.connect()
  try {
    return (await client.query<T>(text, values)).rows
  } finally {
    await client.end()
  }
}

/** The steps of a revision as `FROM>TO: reason`, oldest first. */
export async function stepsOf(dataDirectory: string, revisionId: string | null): Promise<string[]> {
  const rows = await query<{ from_status: string | null; to_status: string; reason: string }>(
    dataDirectory,
    'select * from revision_transitions where revision_id = $1 order by id',
    [revisionId],
  )
  return rows.map((row) => `${row.from_status ?? ''}>${row.to_status}: ${row.reason}`)
}
