import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { BulkExport, BulkExportRun } from '../../src/contract/bulk-export.ts'
import type { Deployment } from '../../src/contract/deployment.ts'
import type { Destination } from '../../src/contract/destination.ts'
import { ACCESS_KEY, type BucketServer, startBucketServer } from './bulk-export/support/bucket-server.ts'
import { askDuckDb } from './bulk-export/support/readers.ts'
import { createProject, fillRuns, storedIds } from './bulk-export/support/runs.ts'
import { asPlatform } from './cluster-support/client.ts'
import { type Cluster, type ClusterNode, startCluster } from './cluster-support/cluster.ts'
import { commitAgent, createFast, patch, type PlatformProcess, reach, run } from './lifecycle-support/platform-process.ts'
import { createGitRepository, type GitRepository } from './support/git-repository.ts'
import { processesWith, until } from './support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'platform-cluster-'))
const [START, END] = ['2026-08-19T00:00:00Z', '2026-08-20T00:00:00Z']
/** Long enough for a busy machine; a lease would be thirty seconds alone. */
const TAKEOVER_MS = 60_000
vi.setConfig({ testTimeout: 3 * TAKEOVER_MS, hookTimeout: TAKEOVER_MS })
let cluster: Cluster
let platform: PlatformProcess
let repository: GitRepository
let deployment: Deployment
let bucket: BucketServer

beforeAll(async () => {
  repository = createGitRepository(path.join(folder, 'repository'))
  commitAgent(repository, { version: '1' })
  bucket = await startBucketServer()
  cluster = await startCluster({ exportSettings: { fileRows: 100, lookMs: 100 } })
  platform = asPlatform(cluster)
})

afterAll(async () => {
  await cluster.stop()
  await bucket.stop()
  rmSync(folder, { recursive: true, force: true })
})

const leader = async () =>
  (await cluster.database.db.selectFrom('nodes').select('id').where('leads_since', 'is not', null).execute()).map((row) => row.id)
const hostsOf = async (revisionId: string | null) => {
  const serving = cluster.database.db.selectFrom('agents').select('node_id').where('state', '=', 'serving')
  return (await serving.where('revision_id', '=', revisionId ?? '').execute()).map((row) => row.node_id)
}
const isLeader = (ids: readonly string[]) => (node: ClusterNode) => ids.includes(node.id)
const queueOf = (id: string | null | undefined): ClusterNode => {
  const node = cluster.nodes('queue').find((one) => one.id === id)
  if (node === undefined) throw new Error(`no queue process runs that is ${id}`)
  return node
}
const through = (api: ClusterNode): PlatformProcess => ({ ...platform, url: api.url })
const versionOf = (text: string) => /version (\d+)/.exec(text)?.[1]

test('an agent is reached through every api process in the moment that any of them says DEPLOYED', async () => {
  deployment = await createFast(platform, { name: 'cluster', repository })
  await reach(platform, deployment, ['DEPLOYED'])
  for (const api of cluster.nodes('api')) {
    expect(await run(through(api), deployment)).toMatchObject({ status: 200, text: expect.stringContaining('version 1') })
  }
})

test('the node that builds is killed: another one builds the same revision', async () => {
  commitAgent(repository, { version: '2', installMs: 3000 })
  deployment = await patch(platform, deployment.id)
  await reach(platform, deployment, ['BUILDING'])
  const { lease_owner: owner } = await cluster.database.db
    .selectFrom('revisions')
    .select('lease_owner')
    .where('id', '=', deployment.latest_revision_id)
    .executeTakeFirstOrThrow()
  const builder = queueOf(owner)
  await builder.kill()
  await cluster.start('queue')
  await reach(platform, deployment, ['DEPLOYED'], { timeoutMs: TAKEOVER_MS })
  expect(await hostsOf(deployment.latest_revision_id)).not.toContain(builder.id)
  await until(async () => versionOf((await run(platform, deployment)).text) === '2')
})

test('no request fails, and no stream is cut, while revisions swap under load through both api processes', async () => {
  const failures: string[] = []
  const versions: string[] = []
  let going = true
  const apis = cluster.nodes('api')
  const load = [...apis, ...apis].map(async (api) => {
    while (going) {
      const seen = await run(through(api), deployment).catch((error: unknown) => ({ status: 0, text: String(error) }))
      const version = versionOf(seen.text)
      if (seen.status === 200 && version !== undefined) versions.push(version)
      else failures.push(`${seen.status}: ${seen.text.slice(0, 300)}`)
    }
  })
  commitAgent(repository, { version: '3' })
  deployment = await patch(platform, deployment.id)
  await reach(platform, deployment, ['AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'])
  const streams = apis.map((api) => run(through(api), deployment, { ms: 6000 }))
  await reach(platform, deployment, ['DEPLOYED'])
  for (const api of apis)
    expect(versionOf((await run(through(api), deployment)).text), 'nothing new reaches the old one').toBe('3')
  const seen = await Promise.all(streams)
  going = false
  await Promise.all(load)
  expect(failures).toEqual([])
  expect(seen.map(({ status, text }) => [status, versionOf(text)])).toEqual([
    [200, '2'],
    [200, '2'],
  ])
  expect(new Set(versions)).toEqual(new Set(['2', '3']))
})

test('an export goes on in another node when its own is killed: every row once, and no more files than it says', async () => {
  const { db } = cluster.database
  const { id: workspaceId } = await db
    .selectFrom('workspaces')
    .select('id')
    .orderBy('created_at')
    .limit(1)
    .executeTakeFirstOrThrow()
  const projectId = await createProject(db, workspaceId)
  await fillRuns(db, { workspaceId, projectId, count: 3000, start: START, end: END })
  const ids = await storedIds(db, projectId, START, END)
  const config = { bucket_name: bucket.bucket, prefix: 'cluster', endpoint_url: bucket.url, region: 'eu-central-1' }
  const destination = await platform.ask<Destination>('/api/v1/bulk-exports/destinations', {
    method: 'POST',
    body: { destination_type: 's3', display_name: 'warehouse', config, credentials: ACCESS_KEY },
  })
  const { id } = await platform.ask<BulkExport>('/api/v1/bulk-exports', {
    method: 'POST',
    body: { bulk_export_destination_id: destination.id, session_id: projectId, start_time: START, end_time: END },
  })
  const runRow = () => db.selectFrom('bulk_export_runs').selectAll().where('export_id', '=', id).executeTakeFirstOrThrow()
  await until(async () => Number((await runRow()).rows_written) > 0, TAKEOVER_MS)
  const { lease_owner: owner, status } = await runRow()
  expect(status).toBe('RUNNING')
  await queueOf(owner).kill()
  await cluster.start('queue')
  await until(async () => (await runRow()).status === 'COMPLETED', TAKEOVER_MS)
  const runs = await platform.ask<BulkExportRun[]>(`/api/v1/bulk-exports/${id}/runs`)
  const files = runs
    .flatMap((one) => one.metadata.result?.exported_files ?? [])
    .map((file) => file.slice(bucket.bucket.length + 1))
  expect((await bucket.keys()).filter((key) => key.includes(id))).toEqual(files.toSorted())
  const rows = await askDuckDb(files.map(bucket.fileOf), 'select id from read_parquet(FILES)')
  expect(rows.map((row) => String(row['id'])).toSorted()).toEqual(ids)
  expect((await runRow()).losses, 'the checkpoints of the next worker forgave the loss').toBe(0)
})

test('a node that leads and runs agents is killed: another leads, and builds and starts them', async () => {
  // The test before may have killed either.
  await until(
    async () => (await hostsOf(deployment.latest_revision_id)).length === 1 && cluster.nodes().some(isLeader(await leader())),
    TAKEOVER_MS,
  )
  const [host] = await hostsOf(deployment.latest_revision_id)
  const [first] = await leader()
  // The two may be one.
  const killed = queueOf(host)
  await killed.kill()
  if (first !== host) await queueOf(first).kill()
  await cluster.start('queue')
  await until(async () => (await run(platform, deployment).catch(() => null))?.status === 200, TAKEOVER_MS)
  const [heir] = await hostsOf(deployment.latest_revision_id)
  expect(heir).not.toBe(host)
  expect(existsSync(path.join(queueOf(heir).data, 'builds', deployment.latest_revision_id ?? '')), 'it was built there').toBe(
    true,
  )
  expect((await leader()).filter((id) => id !== first)).toHaveLength(1)
  await until(() => processesWith(`${killed.data}/builds`).length === 0)
})

test('the death of an api process costs nothing but the connections that it had', async () => {
  const [victim] = cluster.nodes('api')
  const outcomes: string[] = []
  let going = true
  const load = [1, 2].map(async () => {
    while (going)
      outcomes.push(
        await run(platform, deployment).then(
          (seen) => String(seen.status),
          () => 'broken',
        ),
      )
  })
  await until(() => outcomes.length > 4)
  await victim?.kill()
  const from = outcomes.length
  await until(() => outcomes.length > from + 10, TAKEOVER_MS)
  going = false
  await Promise.all(load)
  expect(outcomes.filter((outcome) => outcome !== '200' && outcome !== 'broken')).toEqual([])
  expect(outcomes.filter((outcome) => outcome === 'broken').length).toBeLessThanOrEqual(2)
  await platform.ask(`/v2/deployments/${deployment.id}`, { method: 'DELETE' })
  await until(async () => (await cluster.database.db.selectFrom('agents').select('id').execute()).length === 0, TAKEOVER_MS)
})
