import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { Writable } from 'node:stream'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentSecrets } from '../../../src/platform/control-plane/environment.ts'
import { openRevisionLog } from '../../../src/platform/control-plane/logs.ts'
import { ENVIRONMENT_BYTES_MAX, SECRET_BYTES_MAX } from '../../../src/platform/control-plane/secret-rules.ts'
import { checkKey } from '../../../src/platform/master-key.ts'
import { createSecretBox } from '../../../src/platform/secrets.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { create, createControlPlane, gitDeployment, type TestControlPlane } from '../support/control-plane.ts'
import { createWorkspace, SILENT, startTestDatabase, type TestDatabase } from '../support/database.ts'

const VALUE = 'sw0rdfish-in-clear-0123456789'

let database: TestDatabase
let plane: TestControlPlane
let ask: ReturnType<TestControlPlane['as']>
let logged = ''
let answered = ''
let key: string

beforeAll(async () => {
  database = await startTestDatabase()
  const log = pino({ level: 'trace' }, new Writable({ write: (chunk: Buffer, _, done) => ((logged += chunk.toString()), done()) }))
  plane = createControlPlane({ db: database.db, log })
  key = (await createWorkspace(database.db)).key
  ask = async (request) => {
    const seen = await plane.ask({ ...request, key })
    answered += JSON.stringify([seen.body, ...seen.headers])
    return seen
  }
})
afterAll(() => database.stop())

/** Files under a folder that hold a text. */
async function filesWith(folder: string, text: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true })
  const found: string[] = []
  for (const name of names) {
    const file = path.join(folder, name)
    if ((await stat(file)).isFile() && (await readFile(file)).includes(text)) found.push(name)
  }
  return found
}

describe('the value of a secret', () => {
  it('reaches the agent, and no file of the database, no answer and no log', async ({ skip }) => {
    skip(CLUSTERED, 'it reads the log of this process')
    const deployment = await create(ask, gitDeployment('secret', { secrets: [{ name: 'TOKEN', value: VALUE }] }))
    const path = `/v2/deployments/${deployment.id}`
    await ask({ method: 'PATCH', path, body: { secrets: [{ name: 'TOKEN', value: `${VALUE}-2` }, { name: 'PLAIN', value: 'x' }] } })
    await ask({ method: 'POST', path: `${path}/revisions`, body: {} })
    await ask({ path })
    await ask({ path: '/v2/deployments' })
    await ask({ path: `${path}/revisions` })
    // Refusals say which field is at fault, not what was in it.
    const secret = (value: unknown, name: unknown = 'TOKEN') => ({ ...gitDeployment('refused'), secrets: [{ name, value }] })
    for (const body of [
      secret({ nested: VALUE }),
      secret(VALUE.repeat(4000)),
      secret(`${VALUE}\0`),
      secret(VALUE, '1x'),
      { ...secret(VALUE), name: '' },
      { ...secret(VALUE), source: 'svn' },
      { ...secret(VALUE), source_config: {} },
      { ...secret(VALUE), name: 'secret' },
    ]) {
      expect((await ask({ method: 'POST', path: '/v2/deployments', body })).status).toBeGreaterThanOrEqual(400)
    }
    expect((await ask({ method: 'POST', path: '/v2/deployments', raw: `{"secrets":[{"name":"A","value":"${VALUE}"` })).status).toBe(422)

    const revisions = await database.db.selectFrom('revisions').selectAll().where('deployment_id', '=', deployment.id).orderBy('number').execute()
    expect(revisions.map((revision) => agentSecrets(plane.secretBox, revision))).toEqual([
      { TOKEN: VALUE },
      { TOKEN: `${VALUE}-2`, PLAIN: 'x' },
      { TOKEN: `${VALUE}-2`, PLAIN: 'x' },
    ])
    expect(answered).toContain('"TOKEN"')
    expect(answered).not.toContain(VALUE)
    expect(logged).toContain('request')
    expect(logged).not.toContain(VALUE)

    await sql`checkpoint`.execute(database.db)
    // The search finds what is there in clear, so that it would find the value.
    expect(await filesWith(database.directory, 'https://git.example.com/team/agent.git')).not.toEqual([])
    expect(await filesWith(database.directory, VALUE)).toEqual([])
    expect(await filesWith(database.directory, Buffer.from(VALUE).toString('base64').slice(0, 36))).toEqual([])
    expect(await filesWith(database.directory, key)).toEqual([])
  })

  it('does not open on another deployment, or altered', async () => {
    const one = await create(ask, gitDeployment('one', { secrets: [{ name: 'TOKEN', value: VALUE }] }))
    const row = await database.db.selectFrom('revisions').selectAll().where('id', '=', one.latest_revision_id).executeTakeFirstOrThrow()
    const two = await create(ask, gitDeployment('two'))
    expect(() => agentSecrets(plane.secretBox, { ...row, deployment_id: two.id })).toThrow('the secrets do not open')
    const altered = Buffer.from(row.secrets ?? '')
    altered.writeUInt8(altered.readUInt8(altered.length - 1) ^ 1, altered.length - 1)
    expect(() => agentSecrets(plane.secretBox, { ...row, secrets: altered })).toThrow('the secrets do not open')
  })

  it('is taken out of the lines of builds and agents, each line of it too', async () => {
    const { latest_revision_id } = await create(ask, gitDeployment('lines'))
    const secrets = [VALUE, 'first line\nsecond-line-of-it', 'abc', `${VALUE}-and-more`]
    const lines = openRevisionLog(database.db, { revisionId: latest_revision_id as string, type: 'build', secrets, log: SILENT })
    lines.write('INFO', `token ${VALUE} and ${VALUE}-and-more`)
    lines.write('INFO', 'x second-line-of-it y\nabc stays\u001b[31m red\u0000')
    await lines.close()
    const rows = await database.db.selectFrom('revision_logs').select('message').where('revision_id', '=', latest_revision_id).orderBy('id').execute()
    expect(rows.map(({ message }) => message)).toEqual(['token *** and ***', 'x *** y', 'abc stays red'])
  })
})

describe('the key of an installation', () => {
  it('is checked against what other processes sealed in the same database', async () => {
    const keyFile = '/data/secret.key'
    await checkKey(database.db, { secretBox: plane.secretBox, keyFile })
    await checkKey(database.db, { secretBox: plane.secretBox, keyFile })
    await expect(checkKey(database.db, { secretBox: createSecretBox(Buffer.alloc(32, 1)), keyFile })).rejects.toThrow(
      'the secrets in this database were sealed with another key than the one in /data/secret.key',
    )
  })
})

describe('an environment', () => {
  const post = (secrets: unknown) => ask({ method: 'POST', path: '/v2/deployments', body: gitDeployment('env', { secrets }) })
  const text = (bytes: number) => 'x'.repeat(bytes)

  it('may be as large as a process can take, and no larger', async () => {
    expect((await post([{ name: 'A', value: '€'.repeat(40_000) }])).body.detail).toBe(
      `Secrets error: the value of 'A' has more than ${SECRET_BYTES_MAX} bytes.`,
    )
    const many = Array.from({ length: 17 }, (_, index) => ({ name: `A${index}`, value: text(60_000) }))
    expect((await post(many)).body.detail).toBe(`Secrets error: together they have more than ${ENVIRONMENT_BYTES_MAX} bytes.`)
    expect((await post(many.slice(0, 16))).status).toBe(201)
  })

  it.each([
    [[{ name: 'A', value: '1' }, { name: 'A', value: '2' }], ['body', 'secrets']],
    [[{ name: 'A=B', value: '1' }], ['body', 'secrets', 0, 'name']],
    [[{ name: 'LANGGRAPH_CLOUD_LICENSE_KEY', value: '1' }], ['body', 'secrets', 0, 'name']],
    [[{ name: 'A', value: '1', extra: 1 }], ['body', 'secrets', 0, 'extra']],
    [Array.from({ length: 501 }, (_, index) => ({ name: `A${index}`, value: '' })), ['body', 'secrets']],
  ])('must be one of variables with names of their own (%#)', async (secrets, loc) => {
    const seen = await post(secrets)
    expect(seen.status).toBe(422)
    expect(seen.body.detail[0].loc).toEqual(loc)
  })
})
