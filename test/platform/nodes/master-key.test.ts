import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkKey, hasKey, nameOfKey, readMasterKeys } from '../../../src/platform/master-key.ts'
import { createMembership } from '../../../src/platform/nodes/membership.ts'
import { reseal } from '../../../src/platform/nodes/reseal.ts'
import { makeDeployment, makeRevision } from '../lifecycle-support/rows.ts'
import { createWorkspace, SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'master-key-'))
const keyFile = path.join(folder, 'secret.key')
const [OLD, NEW] = [Buffer.alloc(32, 1).toString('base64'), Buffer.alloc(32, 2).toString('base64')]
const read = (environment: Record<string, string>, mayCreate = async () => true) =>
  readMasterKeys({ environment, keyFile, mayCreate })
const SECRETS = [{ name: 'TOKEN', value: 'p4ssw0rd' }]
let database: TestDatabase

beforeAll(async () => {
  database = await startTestDatabase()
})
afterAll(async () => {
  await database.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('where the master keys come from', () => {
  test('the variable, the file that it names, the data directory; several, the newest first', async () => {
    writeFileSync(path.join(folder, 'mounted'), `${NEW}\n${OLD}\n`)
    expect((await read({ PLATFORM_SECRET_KEY: NEW })).keys).toEqual([Buffer.alloc(32, 2)])
    const mounted = await read({ PLATFORM_SECRET_KEY_FILE: path.join(folder, 'mounted') })
    expect(mounted.keys).toEqual([Buffer.alloc(32, 2), Buffer.alloc(32, 1)])
    expect(mounted.secretBox.open((await read({ PLATFORM_SECRET_KEY: OLD })).secretBox.seal(SECRETS, 'x'), 'x')).toEqual(SECRETS)
    expect((await read({ PLATFORM_SECRET_KEY: `${NEW},${OLD}` })).keys).toEqual(mounted.keys)
    expect(readdirSync(folder), 'no key was made meanwhile').toEqual(['mounted'])
  })

  test('one that is no key, or a file that is not there, is told by its place and not by its text', async () => {
    await expect(read({ PLATFORM_SECRET_KEY: 'aHVudGVyMg==' })).rejects.toThrow(
      /^(?!.*aHVu)PLATFORM_SECRET_KEY does not hold a key of 32 bytes/,
    )
    await expect(read({ PLATFORM_SECRET_KEY_FILE: '/nowhere' })).rejects.toThrow(
      'PLATFORM_SECRET_KEY_FILE: there is no file /nowhere',
    )
  })

  test('no key is made where the database has secrets already', async () => {
    await expect(read({}, async () => false)).rejects.toThrow('sealed with a key that is not here')
    expect(readdirSync(folder)).toEqual(['mounted'])
  })
})

test('a key is changed: both open, then everything is sealed with the new one, then the old one is not needed', async () => {
  const { db } = database
  const before = await read({ PLATFORM_SECRET_KEY: OLD })
  expect(await hasKey(db)).toBe(false)
  await checkKey(db, { secretBox: before.secretBox, keyFile: before.from })
  expect(await hasKey(db)).toBe(true)
  const { id: workspaceId } = await createWorkspace(db)
  const deploymentId = await makeDeployment(db, workspaceId)
  const revisions: string[] = []
  for (let index = 0; index < 3; index += 1) {
    const id = await makeRevision(db, deploymentId)
    await db
      .updateTable('revisions')
      .set({ secrets: before.secretBox.seal(SECRETS, deploymentId) })
      .where('id', '=', id)
      .execute()
    revisions.push(id)
  }
  const destinationId = randomUUID()
  await db
    .insertInto('export_destinations')
    .values({
      id: destinationId,
      workspace_id: workspaceId,
      destination_type: 's3',
      display_name: 'x',
      config: JSON.stringify({ bucket_name: 'x' }),
      credentials: before.secretBox.seal(SECRETS, destinationId),
      credentials_keys: '[]',
    })
    .execute()

  const both = await read({ PLATFORM_SECRET_KEY: `${NEW},${OLD}` })
  await checkKey(db, { secretBox: both.secretBox, keyFile: both.from })
  const node = (id: string, { keys }: { keys: readonly Buffer[] }) =>
    createMembership(db, { id, role: 'queue', url: null, keyNames: keys.map(nameOfKey) }).beat()
  await node('one', both)
  await node('two', before)
  expect(await reseal(db, both, SILENT), 'a node knows the old key only').toBeNull()
  await node('two', both)
  expect(await reseal(db, both, SILENT)).toBe(5)
  expect(await reseal(db, both, SILENT)).toBe(0)

  const after = await read({ PLATFORM_SECRET_KEY: NEW })
  await checkKey(db, { secretBox: after.secretBox, keyFile: after.from })
  for (const id of revisions) {
    const { secrets } = await db.selectFrom('revisions').select('secrets').where('id', '=', id).executeTakeFirstOrThrow()
    expect(after.secretBox.open(secrets as Buffer, deploymentId)).toEqual(SECRETS)
    expect(() => before.secretBox.open(secrets as Buffer, deploymentId)).toThrow('the secrets do not open')
  }
  const { credentials } = await db.selectFrom('export_destinations').select('credentials').executeTakeFirstOrThrow()
  expect(after.secretBox.open(credentials as Buffer, destinationId)).toEqual(SECRETS)
  await expect(checkKey(db, { secretBox: before.secretBox, keyFile: before.from })).rejects.toThrow(
    'the secrets in this database were sealed with another key than the one in PLATFORM_SECRET_KEY',
  )
})
