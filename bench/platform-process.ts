import { type ChildProcess, spawn, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import type { Deployment } from '../src/contract/deployment.ts'
import type { Revision } from '../src/contract/revision.ts'
import { inRoot } from '../scripts/root.ts'
import { type AskPlatform, askPlatform } from '../test/platform/support/ask-platform.ts'

/** The key of the platforms that benches start. */
export const API_KEY = 'bench-key-0123456789abcdef'

/** A platform in a process of its own, to be measured from outside. */
export interface MeasuredPlatform {
  readonly url: string
  readonly apiKey: string
  readonly ask: AskPlatform
  end(signal: NodeJS.Signals): Promise<void>
}

export async function startPlatform(dataDirectory: string): Promise<MeasuredPlatform> {
  const args = ['src/platform/main.ts', '--port', '0', '--data-dir', dataDirectory, '--json', '--api-key', API_KEY]
  const env = { ...process.env, PLATFORM_LOG_LEVEL: 'warn' }
  const child = spawn(process.execPath, args, { cwd: inRoot(), stdio: ['ignore', 'pipe', 'pipe'], env })
  const url = await readUrl(child)
  return {
    url,
    apiKey: API_KEY,
    ask: askPlatform(url, API_KEY),
    end: async (signal) => {
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    },
  }
}

async function readUrl(child: ChildProcess): Promise<string> {
  let out = ''
  let errors = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  while (!out.includes('\n')) {
    if (child.exitCode !== null) throw new Error(`the platform did not start: ${errors}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return (JSON.parse(out) as { url: string }).url
}

/** The example agent in a repository of its own. */
export function createEchoRepository(folder: string): { commit(version: string): void; url: string } {
  const directory = join(folder, 'repository')
  cpSync(inRoot('examples', 'echo-agent'), directory, { recursive: true, filter: (file) => basename(file) !== 'node_modules' })
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com', ...args], {
      cwd: directory,
      stdio: 'ignore',
    })
  git('init', '--quiet', '--initial-branch=main')
  const commit = (version: string) => {
    const file = join(directory, 'agent.mjs')
    writeFileSync(file, readFileSync(file, 'utf8').replace(/VERSION = '[^']*'/, `VERSION = '${version}'`))
    git('add', '--all')
    git('commit', '--quiet', '--allow-empty', '-m', version)
  }
  commit('0')
  return { commit, url: pathToFileURL(directory).href }
}

export function createDeployment(
  platform: Pick<MeasuredPlatform, 'ask'>,
  { name, repoUrl }: { name: string; repoUrl: string },
): Promise<Deployment> {
  return platform.ask<Deployment>('/v2/deployments', {
    method: 'POST',
    body: {
      name,
      source: 'git_host',
      source_config: { repo_url: repoUrl, build_on_push: false },
      source_revision_config: { repo_ref: 'main' },
      secrets: [],
    },
  })
}

export async function untilDeployed(platform: MeasuredPlatform, { id, latest_revision_id }: Deployment): Promise<Revision> {
  for (;;) {
    const revision = await platform.ask<Revision>(`/v2/deployments/${id}/revisions/${latest_revision_id}`)
    if (revision.status === 'DEPLOYED') return revision
    if (revision.status.endsWith('FAILED')) throw new Error(`the revision ended as ${JSON.stringify(revision)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Address of the embedded database of a platform that runs. */
export function databaseUrlOf(dataDirectory: string): string {
  const port = readFileSync(join(dataDirectory, 'database', 'postmaster.pid'), 'utf8').split('\n')[3]
  const password = readFileSync(join(dataDirectory, 'database.password'), 'utf8').trim()
  return `postgres://platform:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`
}

/** When the revision was in which status: milliseconds in each, from its transitions in the embedded database. */
export async function phasesOf(dataDirectory: string, revisionId: string): Promise<Map<string, number>> {
  const client = new pg.Client({ connectionString: databaseUrlOf(dataDirectory) })
  await client.connect()
  const { rows } = await client.query<{ to_status: string; at: Date }>(
    'select to_status, at from revision_transitions where revision_id = $1 order by id',
    [revisionId],
  )
  await client.end()
  const phases = new Map<string, number>()
  for (const [index, { to_status, at }] of rows.entries()) {
    const next = rows[index + 1]
    if (next !== undefined) phases.set(to_status, (phases.get(to_status) ?? 0) + next.at.getTime() - at.getTime())
  }
  return phases
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const low = sorted[sorted.length % 2 === 1 ? middle : middle - 1] ?? 0
  return (low + (sorted[middle] ?? 0)) / 2
}

export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`.padStart(9)
}

export function writeResults(name: string, results: object): void {
  const file = inRoot('bench', 'results', `${name}.json`)
  mkdirSync(dirname(file), { recursive: true })
  const machine = { node: process.versions.node, cpus: cpus().length, model: cpus()[0]?.model }
  writeFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), machine, ...results }, null, 2)}\n`)
}
