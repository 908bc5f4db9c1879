import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/platform/workspaces/authenticate.ts'
import { ensureFirstWorkspace } from '../../../src/platform/workspaces/first-workspace.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await startTestDatabase()
})
afterAll(() => database.stop())
beforeEach(async () => {
  await database.db.deleteFrom('workspaces').execute()
})

const callerOf = (key: string | null) => createAuthenticate(database.db)((name) => (name === 'X-Api-Key' ? key : null))

describe('the first workspace', () => {
  it('is made at the first start with a key that opens it, and found at the next without one', async () => {
    const first = await ensureFirstWorkspace(database.db, { plan: 'plus' })
    expect(first.apiKey).toMatch(/^das_[\w-]{40}$/)
    expect(await callerOf(first.apiKey)).toEqual({ workspaceId: first.workspaceId, plan: 'plus', scope: 'full' })
    expect(await ensureFirstWorkspace(database.db, { plan: 'developer' })).toEqual({ workspaceId: first.workspaceId, apiKey: null })
    expect(await callerOf(first.apiKey)).toEqual({ workspaceId: first.workspaceId, plan: 'developer', scope: 'full' })
  })

  it('keeps of a key its hash alone', async () => {
    const { apiKey } = await ensureFirstWorkspace(database.db, { plan: 'plus', apiKey: 'a-key-from-the-command-line' })
    const rows = await database.db.selectFrom('api_keys').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain(apiKey)
    expect(rows[0]?.key_hash).toHaveLength(32)
  })

  it('takes another key at a later start, and the old one goes on', async () => {
    const first = await ensureFirstWorkspace(database.db, { plan: 'plus', apiKey: 'the-first-key-0123' })
    const second = await ensureFirstWorkspace(database.db, { plan: 'plus', apiKey: 'the-second-key-0123' })
    expect(second.workspaceId).toBe(first.workspaceId)
    for (const key of ['the-first-key-0123', 'the-second-key-0123']) {
      expect(await callerOf(key)).toMatchObject({ workspaceId: first.workspaceId })
    }
  })

  it('has the id that is asked for, and refuses another one later', async () => {
    const id = randomUUID()
    expect((await ensureFirstWorkspace(database.db, { plan: 'plus', workspaceId: id.toUpperCase() })).workspaceId).toBe(id)
    expect((await ensureFirstWorkspace(database.db, { plan: 'plus', workspaceId: id })).workspaceId).toBe(id)
    await expect(ensureFirstWorkspace(database.db, { plan: 'plus', workspaceId: randomUUID() })).rejects.toThrow(
      `the data belongs to the workspace ${id}, not to --workspace-id`,
    )
  })

  it('refuses a key that another workspace has', async () => {
    await ensureFirstWorkspace(database.db, { plan: 'plus' })
    const other = await createWorkspace(database.db)
    await expect(ensureFirstWorkspace(database.db, { plan: 'plus', apiKey: other.key })).rejects.toThrow(
      `the key in --api-key belongs to the workspace ${other.id}`,
    )
  })

  it('is made once by platforms that start together on one database', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => ensureFirstWorkspace(database.db, { plan: 'plus' })))
    expect(new Set(all.map(({ workspaceId }) => workspaceId)).size).toBe(1)
    expect(all.filter(({ apiKey }) => apiKey !== null)).toHaveLength(1)
  })
})
