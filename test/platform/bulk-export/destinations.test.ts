import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { afterEach, describe, expect, it } from 'vitest'
import { openCredentials } from '../../../src/platform/bulk-export/destinations.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { createWorkspace } from '../support/database.ts'
import { ACCESS_KEY } from './support/bucket-server.ts'
import { setExportScene } from './support/scene.ts'
import { BASE, type ExportWorld, secretBox } from './support/world.ts'

const scene = setExportScene()
const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections()
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) delete process.env[name]
})

const PATH = `${BASE}/destinations`
const body = (config: Record<string, unknown> = {}, changes: Record<string, unknown> = {}) => ({
  destination_type: 's3',
  display_name: 'warehouse',
  config: { bucket_name: scene.bucket.bucket, prefix: 'here', endpoint_url: scene.bucket.url, ...config },
  credentials: ACCESS_KEY,
  ...changes,
})
const count = async (world: ExportWorld) => (await world.ask('GET', PATH)).body.length as number

describe('a destination', () => {
  it('is made once a test file could be written and deleted', async () => {
    const world = await scene.makeWorld()
    const seen = await world.ask('POST', PATH, body())
    expect(seen).toMatchObject({
      status: 200,
      body: {
        tenant_id: world.workspace.id,
        display_name: 'warehouse',
        destination_type: 's3',
        config: {
          bucket_name: 'traces',
          prefix: 'here',
          region: null,
          endpoint_url: scene.bucket.url,
          include_bucket_in_prefix: false,
        },
        credentials_keys: ['access_key_id', 'secret_access_key'],
      },
    })
    expect(scene.bucket.requests.map(({ operation }) => operation)).toEqual(['put', 'delete'])
    expect(scene.bucket.requests[0]?.key).toMatch(/^here\/tmp\/[0-9a-f-]{36}\.txt$/)
    expect(await scene.bucket.keys()).toEqual([])
    expect((await world.ask('GET', `${PATH}/${seen.body.id}`)).body).toEqual(seen.body)
    expect((await world.ask('GET', PATH)).body).toEqual([seen.body])
  })

  it('leaves the test file where deleting is denied, and needs neither reading nor aborting', async () => {
    const world = await scene.makeWorld()
    scene.bucket.deny('delete', 'head', 'get', 'abort-upload')
    const { prefix } = (await world.createDestination({}, { prefix: `left/${world.workspace.id}` })).config
    expect((await scene.bucket.keys()).filter((key) => key.startsWith(`${prefix}/tmp/`))).toHaveLength(1)
  })

  it('needs writing', async () => {
    const world = await scene.makeWorld()
    scene.bucket.deny('put')
    expect(await world.ask('POST', PATH, body())).toEqual({
      status: 400,
      body: { detail: expect.stringMatching(/^Access denied: .*\(AccessDenied\)/) },
    })
    expect(await count(world)).toBe(0)
  })

  it.each([
    ['AccessDenied', 403, 'Access denied'],
    ['SignatureDoesNotMatch', 403, 'Access denied'],
    ['ExpiredToken', 400, 'Access denied'],
    ['NoSuchBucket', 404, 'Bucket is not valid'],
    ['InvalidBucketName', 400, 'Bucket is not valid'],
    ['PermanentRedirect', 301, 'Bucket is not valid'],
    ['AuthorizationHeaderMalformed', 400, 'Bucket is not valid'],
    ['InvalidAccessKeyId', 403, 'Key ID you provided does not exist'],
    ['SomethingElse', 418, 'Invalid endpoint'],
  ])('is refused for the code %s with status %i as: %s', async (code, status, word) => {
    const world = await scene.makeWorld()
    scene.bucket.fail('put', { kind: 'answer', status, code }, 10)
    const seen = await world.ask('POST', PATH, body())
    expect(seen.status).toBe(400)
    expect(seen.body.detail.startsWith(`${word}: `)).toBe(true)
    expect(seen.body.detail).not.toContain(ACCESS_KEY.secret_access_key.repeat(2))
  })

  it('is refused by the store itself for a bucket and a key that there are not', async () => {
    const world = await scene.makeWorld()
    expect((await world.ask('POST', PATH, body({ bucket_name: 'nowhere' }))).body.detail).toMatch(
      /^Bucket is not valid: .*NoSuchBucket/,
    )
    const credentials = { access_key_id: 'nobody', secret_access_key: 'x' }
    expect((await world.ask('POST', PATH, body({}, { credentials }))).body.detail).toMatch(
      /^Key ID you provided does not exist: .*InvalidAccessKeyId/,
    )
  })

  it.each([
    [
      'a server that answers everything with a page',
      (server: Server) => server.on('request', (_, response) => response.end('<html>Welcome</html>')),
    ],
    [
      'a server without that path',
      (server: Server) =>
        server.on('request', (_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<html>')),
    ],
    [
      'a server that speaks something else',
      (server: Server) => server.on('connection', (socket) => socket.end('220 mail.example.com ESMTP\r\n')),
    ],
  ])('is refused as an invalid endpoint for %s', async (_, behave) => {
    const world = await scene.makeWorld()
    const server = createServer()
    servers.push(server)
    behave(server)
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const endpoint_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const seen = await world.ask('POST', PATH, body({ endpoint_url }))
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toMatch(/^Invalid endpoint: /)
  })

  it.each([
    ['http://127.0.0.1:9', 'ECONNREFUSED'],
    ['http://bucket.invalid', 'ENOTFOUND|EAI_AGAIN'],
    ['ftp://s3.example.com', 'should begin with https'],
    ['https://user:secret@s3.example.com', 'must not carry credentials'],
    ['http://169.254.169.254/latest', 'link-local'],
    ['http://[::ffff:169.254.169.254]', 'link-local'],
    ['http://[fe80::1]', 'link-local'],
    ['http://2852039166', 'link-local'],
    ['not an address', 'should be an address'],
  ])('is refused as an invalid endpoint at %s: %s', async (endpoint_url, reason) => {
    const world = await scene.makeWorld()
    const seen = await world.ask('POST', PATH, body({ endpoint_url }))
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toMatch(new RegExp(`^Invalid endpoint: .*(?:${reason})`))
    expect(seen.body.detail).not.toContain('secret@')
  })

  it('may be asked for later when the store is only out of breath', async () => {
    const world = await scene.makeWorld()
    scene.bucket.fail('put', { kind: 'answer', status: 503, code: 'SlowDown' }, 2)
    expect((await world.ask('POST', PATH, body())).status).toBe(200)
    scene.bucket.fail('put', { kind: 'answer', status: 503, code: 'SlowDown' }, 3)
    expect(await world.ask('POST', PATH, body())).toMatchObject({
      status: 503,
      body: { detail: expect.stringContaining('SlowDown') },
    })
  })

  it('keeps its credentials encrypted, shows their names only, and opens them for itself alone', async () => {
    const world = await scene.makeWorld()
    const credentials = { access_key_id: 'S3RVER', secret_access_key: 'very-secret-value', session_token: 'passing-token' }
    const { id, credentials_keys } = await world.createDestination({ credentials })
    expect(credentials_keys).toEqual(['access_key_id', 'secret_access_key', 'session_token'])
    const { rows } = await sql<{ text: string }>`select d::text as text from export_destinations d where id = ${id}`.execute(
      scene.database.db,
    )
    const [row] = await scene.database.db.selectFrom('export_destinations').selectAll().where('id', '=', id).execute()
    for (const secret of ['very-secret-value', 'passing-token', 'S3RVER']) {
      expect(rows[0]?.text).not.toContain(secret)
      expect(row?.credentials?.includes(secret)).toBe(false)
    }
    expect(openCredentials(secretBox, row!)).toEqual(credentials)
    expect(() => openCredentials(secretBox, { ...row!, id: world.projectId })).toThrow('do not open')
    expect(JSON.stringify((await world.ask('GET', PATH)).body)).not.toContain('very-secret-value')
  })

  it('sends the session token along', async () => {
    const world = await scene.makeWorld()
    const tokens: unknown[] = []
    const server = createServer((request, response) => {
      tokens.push(request.headers['x-amz-security-token'])
      response.writeHead(200, { etag: '"x"' }).end()
    })
    servers.push(server)
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const endpoint_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const seen = await world.ask(
      'POST',
      PATH,
      body({ endpoint_url }, { credentials: { ...ACCESS_KEY, session_token: 'the-token' } }),
    )
    expect(seen.status).toBe(200)
    expect(tokens).toEqual(['the-token', 'the-token'])
  })

  it.for(['self_hosted', 'any'] as const)(
    'uses the environment where the offering is %s and credentials are left out',
    async (offering, context) => {
      if (CLUSTERED) context.skip('the environment is that of this process alone')
      const world = await scene.makeWorld({ offering })
      process.env['AWS_ACCESS_KEY_ID'] = 'S3RVER'
      process.env['AWS_SECRET_ACCESS_KEY'] = 'S3RVER'
      expect(await world.createDestination({ credentials: null })).toMatchObject({ credentials_keys: [] })
      process.env['AWS_ACCESS_KEY_ID'] = 'nobody'
      expect((await world.ask('POST', PATH, body({}, { credentials: undefined }))).body.detail).toMatch(
        /^Key ID you provided does not exist/,
      )
    },
  )

  it('must have credentials in the cloud, and the answer says so', async () => {
    const world = await scene.makeWorld({ offering: 'cloud' })
    const seen = await world.ask('POST', PATH, body({}, { credentials: undefined }))
    expect(seen).toEqual({
      status: 400,
      body: { detail: expect.stringMatching(/credentials are required: only self-hosted installations/) },
    })
    expect((await world.ask('POST', PATH, body())).status).toBe(200)
  })

  it('takes new credentials after a test write with them, and keeps the old ones otherwise', async () => {
    const world = await scene.makeWorld()
    const { id } = await world.createDestination()
    const stored = () =>
      scene.database.db.selectFrom('export_destinations').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    const wrong = { access_key_id: 'nobody', secret_access_key: 'new' }
    expect((await world.ask('PATCH', `${PATH}/${id}`, { credentials: wrong })).body.detail).toMatch(
      /^Key ID you provided does not exist/,
    )
    expect(openCredentials(secretBox, await stored())).toMatchObject(ACCESS_KEY)
    const fresh = { ...ACCESS_KEY, session_token: 'fresh' }
    expect((await world.ask('PATCH', `${PATH}/${id}`, { credentials: fresh })).body).toMatchObject({
      id,
      credentials_keys: ['access_key_id', 'secret_access_key', 'session_token'],
    })
    expect(openCredentials(secretBox, await stored())).toEqual(fresh)
    expect((await world.ask('PATCH', `${PATH}/${id}`, { display_name: 'x', credentials: fresh })).status).toBe(422)
  })

  it("is another workspace's 404", async () => {
    const world = await scene.makeWorld()
    const { id } = await world.createDestination()
    const other = await createWorkspace(scene.database.db)
    for (const [method, content] of [
      ['GET', undefined],
      ['PATCH', { credentials: ACCESS_KEY }],
    ] as const) {
      expect((await world.ask(method, `${PATH}/${id}`, content, { key: other.key })).status).toBe(404)
    }
    expect((await world.ask('GET', PATH, undefined, { key: other.key })).body).toEqual([])
  })

  it('lists every fault of a request at once', async () => {
    const world = await scene.makeWorld()
    const seen = await world.ask('POST', PATH, {
      destination_type: 'gcs',
      display_name: 'a/b',
      config: { bucket_name: 'ab' },
      credentials: { access_key_id: 'x' },
    })
    expect(seen.status).toBe(422)
    const places = seen.body.detail.map(({ loc }: { loc: string[] }) => loc.join('.'))
    expect(places).toEqual([
      'body.destination_type',
      'body.display_name',
      'body.config.bucket_name',
      'body.credentials.secret_access_key',
    ])
  })
})
