import dns from 'node:dns'
import { mkdtemp, rm } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Ceph, type CephUser, startCeph, whyNoCeph } from '../../support/ceph.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { startTestDatabase, type TestDatabase } from '../support/database.ts'
import { type BucketFault, type BucketProxy, startBucketProxy } from './support/bucket-proxy.ts'
import { type CephBucket, createCephBucket, issueToken, type Permission } from './support/ceph-bucket.ts'
import { type KillableWorker, startKillableWorker } from './support/killable-worker.ts'
import { askDuckDb, readWithHyparquet } from './support/readers.ts'
import { DAY_END, DAY_START, fillDay, storedIds } from './support/runs.ts'
import { BASE, createExportWorld, type ExportWorld, type ExportWorldOptions } from './support/world.ts'

/** A store whose users and permissions are its own. Without its programs these tests are skipped, and say so. */
const reason = whyNoCeph()
const PATH = `${BASE}/destinations`
const ALL: Permission[] = ['PutObject', 'DeleteObject', 'GetObject', 'AbortMultipartUpload']
const without = (...taken: Permission[]) => ALL.filter((one) => !taken.includes(one))
/** Every file goes up in parts. */
const IN_PARTS = { multipartAboveBytes: 1000, uploadPartBytes: 5 * 1024 * 1024 }

let database: TestDatabase
let ceph: Ceph
let proxy: BucketProxy
let owner: CephUser
let guest: CephUser
let bucket: CephBucket
let folder: string
let buckets = 0
const worlds: ExportWorld[] = []
const workers: KillableWorker[] = []

beforeAll(async () => {
  if (reason !== null) return
  ;[database, ceph, folder] = await Promise.all([startTestDatabase(), startCeph(), mkdtemp(path.join(tmpdir(), 'ceph-spool-'))])
  proxy = await startBucketProxy({ storePort: ceph.port })
  owner = await ceph.createUser('owner')
  guest = await ceph.createUser('guest')
})
beforeEach(async (context) => {
  if (reason !== null) return context.skip(reason)
  buckets += 1
  bucket = await createCephBucket(ceph, { owner, name: `traces-${buckets}` })
})
afterEach(async () => {
  if (reason !== null) return
  await Promise.all(workers.splice(0).map((worker) => worker.kill()))
  await Promise.all(worlds.splice(0).map((world) => world.stop()))
  proxy.clear()
  await bucket.stop()
})
afterAll(async () => {
  if (reason !== null) return
  await proxy.down()
  await Promise.all([database.stop(), ceph.stop(), rm(folder, { recursive: true, force: true })])
})

async function makeWorld(count: number, settings: ExportWorldOptions['settings'] = {}, textBytes = 200): Promise<ExportWorld> {
  const world = await createExportWorld({ database, bucket: { url: proxy.url, bucket: bucket.name }, settings })
  worlds.push(world)
  if (count > 0) await fillDay(database.db, world, { count, textBytes })
  return world
}

interface Keys {
  readonly access_key_id: string
  readonly secret_access_key: string
  readonly session_token?: string
}
const keysOf = ({ access_key_id, secret_access_key, session_token }: Keys) => ({
  credentials: { access_key_id, secret_access_key, ...(session_token === undefined ? {} : { session_token }) },
})

const tryDestination = (world: ExportWorld, keys: Keys, config: Record<string, unknown> = {}) =>
  world.ask('POST', PATH, {
    destination_type: 's3',
    display_name: 'warehouse',
    config: { bucket_name: bucket.name, prefix: 'here', endpoint_url: proxy.url, ...config },
    ...keysOf(keys),
  })

/** An export with the rights that a user has at the moment. */
async function createExportOf(world: ExportWorld, user: Keys, changes: Record<string, unknown> = {}): Promise<string> {
  const destination = await world.createDestination(keysOf(user))
  return (await world.createExport({ bulk_export_destination_id: destination.id, ...changes })).id
}

/** The objects of an export are those of its record, and two readers find each run of the store in them once. */
async function expectExactly(world: ExportWorld, exportId: string): Promise<void> {
  const ids = await storedIds(database.db, world.projectId, DAY_START, DAY_END)
  const named = (await world.readRuns(exportId))
    .flatMap((run) => run.metadata.result?.exported_files ?? [])
    .map((file) => file.slice(bucket.name.length + 1))
  expect((await bucket.keys()).filter((key) => key.includes(exportId))).toEqual(named.toSorted())
  const files = await bucket.download(named)
  const rows = await askDuckDb(files, 'select id from read_parquet(FILES)')
  expect(rows.map((row) => String(row['id'])).toSorted()).toEqual(ids)
  const others = (await Promise.all(files.map(readWithHyparquet))).flat()
  expect(others.map((row) => String(row['id'])).toSorted()).toEqual(ids)
}

describe('a destination in a store with users', () => {
  it('is refused with the words of the specification, each by the store itself', async () => {
    const world = await makeWorld(0)
    const other = await createCephBucket(ceph, { owner: guest, name: `not-ours-${buckets}` })
    const causes: [string, Keys, Record<string, unknown>, RegExp][] = [
      ['a wrong secret', { ...owner, secret_access_key: 'wrong' }, {}, /^Access denied: .*\(SignatureDoesNotMatch\)/],
      [
        'a key id that nobody has',
        { ...owner, access_key_id: 'NOBODY' },
        {},
        /^Key ID you provided does not exist: .*\(InvalidAccessKeyId\)/,
      ],
      ['no such bucket', owner, { bucket_name: 'nowhere' }, /^Bucket is not valid: .*\(NoSuchBucket\)/],
      ["somebody else's bucket", owner, { bucket_name: other.name }, /^Access denied: .*\(AccessDenied\)/],
      ['a user without any right', guest, {}, /^Access denied: .*\(AccessDenied\)/],
      [
        'a path of the store that is none',
        owner,
        { endpoint_url: `${proxy.url}/no/such` },
        /^(?:Invalid endpoint|Bucket is not valid|Access denied): /,
      ],
    ]
    for (const [what, keys, config, words] of causes) {
      const seen = await tryDestination(world, keys, config)
      expect({ what, status: seen.status }).toEqual({ what, status: 400 })
      expect(seen.body.detail).toMatch(words)
      expect(seen.body.detail).not.toContain(keys.secret_access_key)
    }
    expect((await world.ask('GET', PATH)).body).toEqual([])
    expect([...(await bucket.keys()), ...(await other.keys())]).toEqual([])
    await other.stop()
  })

  it.each([
    [['PutObject', 'DeleteObject', 'GetObject', 'AbortMultipartUpload'], 0],
    [['PutObject', 'DeleteObject'], 0],
    [['PutObject', 'GetObject', 'AbortMultipartUpload'], 1],
    [['PutObject'], 1],
  ] as [Permission[], number][])('is made with %j; of the test file there stay: %i', async (permissions, left) => {
    const world = await makeWorld(0)
    await bucket.allow(guest, permissions)
    expect((await tryDestination(world, guest)).status).toBe(200)
    expect((await bucket.keys()).map((key) => key.replace(/[0-9a-f-]{36}/, 'ID'))).toEqual(
      Array.from({ length: left }, () => 'here/tmp/ID.txt'),
    )
  })

  it('cannot be made without writing, whatever else is allowed', async () => {
    const world = await makeWorld(0)
    await bucket.allow(guest, without('PutObject'))
    expect((await tryDestination(world, guest)).body.detail).toMatch(/^Access denied: .*\(AccessDenied\)/)
    expect(await bucket.keys()).toEqual([])
  })

  it('takes temporary credentials with their session token, and none without it', async () => {
    const world = await makeWorld(60)
    const token = await issueToken(ceph, owner)
    const { session_token: _, ...incomplete } = token
    expect((await tryDestination(world, incomplete)).body.detail).toMatch(/^Key ID you provided does not exist/)
    const id = await createExportOf(world, token)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
    await expectExactly(world, id)
  })

  it('has its bucket in the path or in the host name, as it is asked to', async (context) => {
    if (CLUSTERED) context.skip('it looks names up for this process alone')
    const world = await makeWorld(60)
    const resolve = dns.lookup
    const asked = new Set<string>()
    // There is no name server for the tests' own domain.
    dns.lookup = ((host: string, ...rest: [never, never]) => {
      asked.add(host)
      resolve(host.endsWith(ceph.domain) ? '127.0.0.1' : host, ...rest)
    }) as typeof dns.lookup
    syncBuiltinESMExports()
    try {
      for (const [addressing_style, host] of [
        ['virtual', `${bucket.name}.${ceph.domain}`],
        ['path', ceph.domain],
        ['auto', ceph.domain],
      ]) {
        asked.clear()
        const config = { endpoint_url: `http://${ceph.domain}:${ceph.port}`, config_kwargs_s3: { addressing_style } }
        const destination = await world.createDestination(keysOf(owner), config)
        const ended = await world.run({ bulk_export_destination_id: destination.id })
        expect(ended).toMatchObject({ status: 'COMPLETED' })
        expect([...asked]).toEqual([host])
        await expectExactly(world, ended.id)
      }
    } finally {
      dns.lookup = resolve
      syncBuiltinESMExports()
    }
  })
})

describe('an export into a store with users', () => {
  it.each(['v1', 'v2_beta'])('in %s is read back whole by two readers, in one piece and in parts', async (format_version) => {
    for (const settings of [{ fileRows: 400 }, { fileRows: 400, ...IN_PARTS }]) {
      // Files of 6 MB, each in two parts.
      const world = await makeWorld(1000, settings, 16_000)
      const id = await createExportOf(world, owner, { format_version, compression: 'none' })
      proxy.clear()
      const running = await world.startWorkers()
      expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 1000, files_exported: 3 } })
      await running.stop()
      await expectExactly(world, id)
      expect((await bucket.keys()).filter((key) => key.includes('/tmp/'))).toEqual([])
      expect(await bucket.uploads()).toEqual([])
      const parts = proxy.requests.filter(({ operation }) => operation === 'upload-part')
      expect(parts.length).toBe('multipartAboveBytes' in settings ? 5 : 0)
    }
  })

  it.each([
    ['only writing', ['PutObject']],
    ['no deleting', without('DeleteObject')],
    ['no reading', without('GetObject')],
    ['no aborting', without('AbortMultipartUpload')],
  ] as [string, Permission[]][])('is complete with %s', async (_, permissions) => {
    const world = await makeWorld(300, { fileRows: 100, ...IN_PARTS })
    await bucket.allow(guest, permissions)
    const id = await createExportOf(world, guest)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 300 } })
    // What the guest wrote is the guest's own, and the owner reads it only as the guest lets them: by the bucket's policy.
    const sizes = proxy.requests.filter(({ operation }) => operation === 'head')
    expect(sizes.length).toBe(3)
    expect((await world.readRuns(id))[0]).toMatchObject({ errors: null, retry_number: 0 })
    expect((await bucket.keys()).filter((key) => key.includes(id))).toHaveLength(3)
  })

  it('verifies sizes where reading is allowed, and cannot where it is not', async (context) => {
    if (CLUSTERED) context.skip('a kill may end the attempt that is told the wrong size')
    for (const [permissions, errors] of [
      [ALL, { retry_0: expect.stringMatching(/the bucket has \d+ bytes of a file of \d+/) }],
      [without('GetObject'), null],
    ] as const) {
      const world = await makeWorld(100)
      await bucket.allow(guest, permissions)
      const id = await createExportOf(world, guest)
      let heads = 0
      proxy.onRequest = (operation) => {
        // The store's true answer to a question about size, made smaller on its way.
        if (operation === 'head' && ++heads === 1) proxy.fail('head', { kind: 'shrunk' })
      }
      const running = await world.startWorkers()
      expect(await world.end(id)).toMatchObject({ status: 'COMPLETED' })
      await running.stop()
      expect((await world.readRuns(id))[0]?.errors).toEqual(errors)
    }
  })

  it('fails at once, for good, when writing is withdrawn while it runs', async () => {
    const world = await makeWorld(500, { fileRows: 100, retries: 20 })
    await bucket.allow(guest, ALL)
    const id = await createExportOf(world, guest)
    let puts = 0
    proxy.onRequest = async (operation, key) => {
      if (operation === 'put' && key.endsWith('.parquet') && ++puts === 3) await bucket.allow(guest, without('PutObject'))
    }
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'FAILED', progress: { rows_exported: 200, files_exported: 2 } })
    const [run] = await world.readRuns(id)
    expect(run).toMatchObject({ status: 'FAILED', retry_number: 0 })
    expect(run?.errors).toEqual({
      retry_0: expect.stringMatching(
        /^destination: Access denied: .*\(AccessDenied, .*; fix the destination and create a new export$/,
      ),
    })
    const files = (run?.metadata.result?.exported_files ?? []).map((file) => file.slice(bucket.name.length + 1))
    expect((await bucket.keys()).filter((key) => key.includes(id))).toEqual(files.toSorted())
  })

  it('goes on when everything but writing is withdrawn while it runs', async () => {
    const world = await makeWorld(500, { fileRows: 100, ...IN_PARTS })
    await bucket.allow(guest, ALL)
    const id = await createExportOf(world, guest)
    let completed = 0
    proxy.onRequest = async (operation) => {
      if (operation === 'complete-upload' && ++completed === 2) await bucket.allow(guest, ['PutObject'])
    }
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 500, files_exported: 5 } })
    expect((await world.readRuns(id))[0]?.errors).toBeNull()
  })

  const FAULTS: [string, BucketFault][] = [
    ['an error of the store', { kind: 'answer', status: 500, code: 'InternalError' }],
    ['a line that breaks before', { kind: 'reset', when: 'before' }],
    ['a line that breaks after', { kind: 'reset', when: 'after' }],
    ['half a body', { kind: 'half-written' }],
    ['a slow answer', { kind: 'delay', ms: 2500 }],
  ]
  it.each(FAULTS)('gets over %s at every step of an upload, and leaves no upload behind', async (_, fault) => {
    const world = await makeWorld(200, { fileRows: 100, retryDelayMs: 1, requestLimitMs: 1000, ...IN_PARTS })
    const id = await createExportOf(world, owner)
    // The client repeats a request by itself: three times reach the attempt.
    for (const step of ['create-upload', 'upload-part', 'complete-upload'] as const)
      proxy.fail(step, fault, step === 'upload-part' ? 3 : 1)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 200 } })
    await expectExactly(world, id)
    // A request that reaches the store when all is over begins an upload that nobody can know of.
    expect((await bucket.uploads()).length).toBeLessThanOrEqual(fault.kind === 'delay' ? 1 : 0)
  })

  it.each([
    ['aborted where that is allowed', ALL, 0],
    ['left where it is not', without('AbortMultipartUpload'), 1],
  ] as [string, Permission[], number][])('has the upload of a worker that was killed %s', async (_, permissions, left) => {
    const world = await makeWorld(500, { ...IN_PARTS, leaseMs: 800, heartbeatMs: 100 })
    await bucket.allow(guest, permissions)
    const id = await createExportOf(world, guest, { compression: 'none' })
    const victim = startKillableWorker({
      databaseUrl: database.url,
      spool: path.join(folder, 'victim'),
      owner: 'victim',
      settings: world.settings,
    })
    workers.push(victim)
    let struck = false
    proxy.onRequest = async (operation) => {
      if (operation !== 'complete-upload' || struck) return
      struck = true
      await victim.kill()
    }
    // Nothing but the request that ends the upload is lost: its worker is dead, and the store must not hear of it.
    proxy.fail('complete-upload', { kind: 'reset', when: 'before' }, 1)
    await expect.poll(() => victim.child.signalCode, { timeout: 20_000 }).toBe('SIGKILL')
    expect(await bucket.uploads()).toHaveLength(1)
    await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 500, files_exported: 1 } })
    expect(await bucket.uploads()).toHaveLength(left)
    expect((await bucket.keys()).filter((key) => key.includes(id))).toHaveLength(1)
  })

  it('leaves nothing when it is cancelled in the middle of an upload', async () => {
    const world = await makeWorld(300, { fileRows: 100, ...IN_PARTS })
    const id = await createExportOf(world, owner)
    let completed = 0
    proxy.onRequest = async (operation) => {
      if (operation === 'complete-upload' && ++completed === 2) await world.ask('PATCH', `${BASE}/${id}`, { status: 'Cancelled' })
    }
    const running = await world.startWorkers()
    expect(await world.end(id)).toMatchObject({ status: 'CANCELLED' })
    await running.stop()
    const [run] = await world.readRuns(id)
    const files = (run?.metadata.result?.exported_files ?? []).map((file) => file.slice(bucket.name.length + 1))
    expect(files).toHaveLength(1)
    expect((await bucket.keys()).filter((key) => key.includes(id))).toEqual(files)
    expect(await bucket.uploads()).toEqual([])
  })
})
