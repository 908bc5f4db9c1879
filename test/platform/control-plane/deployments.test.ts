import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { create, createControlPlane, gitDeployment, imageDeployment, type Seen, type TestControlPlane } from '../support/control-plane.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { createWorkspace, startTestDatabase, type TestDatabase } from '../support/database.ts'

const NOBODY = '11111111-1111-1111-1111-111111111111'

let database: TestDatabase
let plane: TestControlPlane
let ask: ReturnType<TestControlPlane['as']>
let workspaceId: string

beforeAll(async () => {
  database = await startTestDatabase()
  plane = createControlPlane({ db: database.db })
})
afterAll(() => database.stop())
beforeEach(async () => {
  const workspace = await createWorkspace(database.db)
  workspaceId = workspace.id
  ask = plane.as(workspace.key)
})

const post = (body: unknown) => ask({ method: 'POST', path: '/v2/deployments', body })
const patch = (id: string, body: unknown) => ask({ method: 'PATCH', path: `/v2/deployments/${id}`, body })
const read = async (id: string) => (await ask({ path: `/v2/deployments/${id}` })).body
const revisionsOf = async (id: string): Promise<{ id: string }[]> => (await ask({ path: `/v2/deployments/${id}/revisions` })).body.resources
const rule = (text: string) => `Source configuration error: ${text}.`
const places = (seen: Seen): string[] => seen.body.detail.map(({ loc, type }: { loc: (string | number)[]; type: string }) => `${loc.join('.')}: ${type}`)

describe('creating a deployment', () => {
  it('answers 201 with its id and the id of its first revision', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, the revision goes on')
    const seen = await post(gitDeployment('first'))
    expect(seen.status).toBe(201)
    expect(seen.body).toMatchObject({
      name: 'first',
      tenant_id: workspaceId,
      status: 'AWAITING_DATABASE',
      source: 'git_host',
      source_config: { repo_url: 'https://git.example.com/team/agent.git', build_on_push: false, deployment_type: 'prod' },
      source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json', image_uri: null, repo_commit_sha: null },
      active_revision_id: null,
    })
    expect(await revisionsOf(seen.body.id)).toEqual([
      expect.objectContaining({ id: seen.body.latest_revision_id, status: 'CREATING', source: 'git_host' }),
    ])
  })

  it('needs no more than a name, a source and what the source is made from', async () => {
    const git = await post({ name: 'least-git', source: 'git_host', source_config: { repo_url: 'https://git.example.com/a/b' } })
    expect(git.body.source_revision_config).toMatchObject({ repo_ref: null, graph_config_path: 'langgraph.json' })
    const image = await post({ name: 'least-image', source: 'external_docker', source_revision_config: { image_uri: 'a/b:1' } })
    expect(image.body.source_revision_config).toMatchObject({ image_uri: 'a/b:1', graph_config_path: null })
  })

  it('shows the address of the agent as url, and as custom_url for a git source', async () => {
    const { body } = await post(gitDeployment('address'))
    expect(body.url).toBe(`http://localhost/agents/address-${body.id.replaceAll('-', '').slice(0, 12)}`)
    expect(body.source_config.custom_url).toBe(body.url)
    const image = await post(imageDeployment('custom', { source_config: { custom_url: 'https://agent.example.com' } }))
    expect(image.body).toMatchObject({ url: 'https://agent.example.com', source_config: { custom_url: 'https://agent.example.com' } })
  })

  it.each([
    ['My_Agent', 'my-agent'],
    ['  spaces and ÜMLAUTS  ', 'spaces-and-mlauts'],
    [`${'a'.repeat(200)}`, 'a'.repeat(63)],
    ['a', 'a'],
  ])('brings the name %j into its alphabet', async (name, normalised) => {
    expect((await post(gitDeployment(name))).body.name).toBe(normalised)
  })

  it.each(['', '---', '日本', 'x'.repeat(256), 7, null, ['a']])('refuses the name %j', async (name) => {
    const seen = await post(gitDeployment('x', { name }))
    expect(seen.status).toBe(422)
    expect(seen.body.detail[0].loc).toEqual(['body', 'name'])
  })

  it('refuses a name that is taken in the workspace, however it is written, and no other', async () => {
    const first = await create(ask, gitDeployment('taken'))
    const again = await post(imageDeployment('TAKEN'))
    expect(again.status).toBe(409)
    expect(again.body.detail).toBe(`A deployment named taken already exists in this workspace (${first.id}).`)
    const elsewhere = plane.as((await createWorkspace(database.db)).key)
    expect((await elsewhere({ method: 'POST', path: '/v2/deployments', body: gitDeployment('taken') })).status).toBe(201)
  })

  it('lets one of two creates of a name that race win', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => post(gitDeployment('race'))))
    expect(all.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409, 409, 409])
    for (const { status, body } of all) if (status === 409) expect(body.detail).toContain('A deployment named race already exists')
  })

  it('refuses a name that a tracing project has, in the words of the hosted service', async () => {
    await database.db.insertInto('tracing_projects').values({ id: NOBODY, workspace_id: workspaceId, name: 'traced' }).execute()
    const seen = await post(gitDeployment('traced'))
    expect(seen.status).toBe(409)
    expect(seen.body.detail).toBe(
      'Deployments create a tracing project in LangSmith with the same name as the deployment. ' +
        'There already exists a project in LangSmith named: traced.',
    )
    await database.db.deleteFrom('tracing_projects').where('id', '=', NOBODY).execute()
    expect((await post(gitDeployment('traced'))).status).toBe(201)
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['a git source without a repository', gitDeployment('r', { source_config: {} }), "'source_config.repo_url' is required for the source 'git_host'"],
    [
      'an image source without an image',
      imageDeployment('r', { source_revision_config: {} }),
      "'source_revision_config.image_uri' is required for the source 'external_docker'",
    ],
    [
      'an image for a git source',
      gitDeployment('r', { source_revision_config: { image_uri: 'a/b' } }),
      "'source_revision_config.image_uri' applies to the source 'external_docker' only; this deployment's source is 'git_host'",
    ],
    [
      'a ref for an image',
      imageDeployment('r', { source_revision_config: { image_uri: 'a/b', repo_ref: 'main' } }),
      "'source_revision_config.repo_ref' applies to the source 'git_host' only; this deployment's source is 'external_docker'",
    ],
    [
      'a configuration path for an image',
      imageDeployment('r', { source_revision_config: { image_uri: 'a/b', graph_config_path: 'a.json' } }),
      "'source_revision_config.graph_config_path' applies to the source 'git_host' only; this deployment's source is 'external_docker'",
    ],
    [
      'building on push for an image',
      imageDeployment('r', { source_config: { build_on_push: true } }),
      "'source_config.build_on_push' applies to the source 'git_host' only; this deployment's source is 'external_docker'",
    ],
    [
      'resources for a git source',
      gitDeployment('r', { source_config: { repo_url: 'https://git.example.com/a/b', resource_spec: { cpu: 1 } } }),
      "'source_config.resource_spec' applies to the source 'external_docker' only; this deployment's source is 'git_host'",
    ],
    [
      'a tag that is built on push',
      gitDeployment('r', {
        source_config: { repo_url: 'https://git.example.com/a/b', build_on_push: true },
        source_revision_config: { repo_ref: 'refs/tags/v1' },
      }),
      "'source_config.build_on_push' must be false when 'source_revision_config.repo_ref' is a tag (refs/tags/v1)",
    ],
    [
      'credentials in an address',
      gitDeployment('r', { source_config: { repo_url: 'https://user:token@git.example.com/a/b' } }),
      "'source_config.repo_url' must not carry credentials: it is shown in answers and logs",
    ],
    [
      'an address that git does not fetch from',
      gitDeployment('r', { source_config: { repo_url: 'ext::sh -c touch% /tmp/x' } }),
      "'source_config.repo_url' has white space or control characters",
    ],
    [
      'a scheme that runs a command',
      gitDeployment('r', { source_config: { repo_url: 'ext::sh' } }),
      "'source_config.repo_url' should be an address like https://github.com/owner/repository: https, http and file are possible",
    ],
  ])('refuses %s with the rule', async (_what, body, text) => {
    const seen = await post(body)
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toBe(rule(text))
    expect((await ask({ path: '/v2/deployments' })).body.resources).toEqual([])
  })

  it('takes a tag that is not built on push', async () => {
    const body = gitDeployment('tagged', { source_revision_config: { repo_ref: 'refs/tags/v1.2.3' } })
    expect((await post(body)).body.source_revision_config.repo_ref).toBe('refs/tags/v1.2.3')
  })

  it.each(['refs/heads/main', 'refs/pull/1/head', '--upload-pack=x', '-b', '../x', 'a..b', 'a b', 'x.lock', '', '@{u}', 'a'.repeat(300)])(
    'refuses the ref %j',
    async (repo_ref) => {
      expect(places(await post(gitDeployment('ref', { source_revision_config: { repo_ref } })))).toEqual([
        'body.source_revision_config.repo_ref: value_error',
      ])
    },
  )

  it.each(['../langgraph.json', '/etc/x.json', 'a/../b.json', 'langgraph.yaml', '--x.json', 'a\\b.json', ''])(
    'refuses the configuration path %j',
    async (graph_config_path) => {
      expect(places(await post(gitDeployment('path', { source_revision_config: { graph_config_path } })))).toEqual([
        'body.source_revision_config.graph_config_path: value_error',
      ])
    },
  )

  it('lists every fault at its place', async () => {
    const seen = await post({
      name: 5,
      source: 'svn',
      source_config: { integration_id: 'x', build_on_push: 'yes', colour: 1, resource_spec: { cpu: 99, min_scale: 1.5 } },
      source_revision_config: { repo_ref: 7, repo_commit_sha: 'abc' },
      secrets: [{ name: 'A', value: 'b' }, { name: '1A', value: 2 }, { name: 'LANGCHAIN_API_KEY' }],
      secret_references: [{ name: 'A' }],
      sauce: true,
    })
    expect(seen.status).toBe(422)
    expect(places(seen).toSorted()).toEqual(
      [
        'body.name: string_type',
        'body.source: enum',
        'body.source_config.integration_id: uuid_parsing',
        'body.source_config.build_on_push: bool_type',
        'body.source_config.colour: extra_forbidden',
        'body.source_config.resource_spec.cpu: less_than_equal',
        'body.source_config.resource_spec.min_scale: int_from_float',
        'body.source_revision_config.repo_ref: string_type',
        'body.source_revision_config.repo_commit_sha: none_required',
        'body.secrets.1.name: string_pattern_mismatch',
        'body.secrets.1.value: string_type',
        'body.secrets.2.name: value_error',
        'body.secrets.2.value: missing',
        'body.secret_references: value_error',
        'body.sauce: extra_forbidden',
      ].toSorted(),
    )
    expect(seen.body.detail.find(({ type }: { type: string }) => type === 'missing').loc).toEqual(['body', 'secrets', 2, 'value'])
  })

  it('accepts what the real clients send besides, and nulls for what they leave open', async () => {
    const seen = await post({
      ...imageDeployment('clients'),
      source_config: {
        integration_id: null, repo_url: null, deployment_type: 'dev', build_on_push: null, custom_url: null, resource_spec: {},
        listener_id: '6F1FDC0E-2A1C-4A63-9D1B-0E9F6AD0A001', listener_config: { k8s_namespace: 'agents' }, install_command: null,
        build_command: null, template_id: null,
      },
      source_revision_config: { repo_ref: null, langgraph_config_path: null, image_uri: 'r/a@sha256:1', source_tarball_path: null },
      secrets: null,
      secret_references: null,
      display_name: 'Clients',
      tracked_packages: ['langgraph:1.4.18'],
      route_through_gateway: true,
    })
    expect(seen.status).toBe(201)
    expect(seen.body).toMatchObject({ display_name: 'Clients', source_config: { deployment_type: 'dev', resource_spec: {} }, secrets: [] })
  })
})

describe('reading a deployment', () => {
  it('is 404 with the sentence of the hosted service for an id that nobody has, whatever its version', async () => {
    for (const id of [NOBODY, '00000000-0000-0000-0000-000000000000', '6F1FDC0E-2A1C-7A63-9D1B-0E9F6AD0A001']) {
      const seen = await ask({ path: `/v2/deployments/${id}` })
      expect(seen.status).toBe(404)
      expect(seen.body).toEqual({ detail: `Deployment ID ${id.toLowerCase()} not found.` })
    }
  })

  it('finds an id in capital letters', async () => {
    const { id } = await create(ask, gitDeployment('capitals'))
    expect((await ask({ path: `/v2/deployments/${id.toUpperCase()}` })).body.id).toBe(id)
  })

  it.each(['abc', '%00', '1', '..%2f..', 'null', '11111111111111111111111111111111x'])('is 422 for the id %j', async (id) => {
    const seen = await ask({ path: `/v2/deployments/${id}` })
    expect(seen.status).toBe(422)
    expect(seen.body.detail[0].loc).toEqual(['path', 'deployment_id'])
  })
})

describe('changing a deployment', () => {
  const ROWS: [string, unknown, boolean][] = [
    ['nothing', {}, false],
    ['nulls', { source_config: null, source_revision_config: { repo_ref: null, graph_config_path: null, image_uri: null }, secrets: null }, false],
    ['repo_ref', { source_revision_config: { repo_ref: 'next' } }, true],
    ['the same repo_ref', { source_revision_config: { repo_ref: 'main' } }, true],
    ['graph_config_path', { source_revision_config: { graph_config_path: 'a/langgraph.json' } }, true],
    ['build_on_push alone', { source_config: { build_on_push: true } }, false],
    ['display_name alone', { display_name: 'Name' }, false],
    ['secrets', { secrets: [{ name: 'A', value: 'b' }] }, true],
    ['an empty list of secrets', { secrets: [] }, false],
    ['install_command', { source_config: { install_command: 'npm ci' } }, true],
    ['build_command', { source_config: { build_command: 'npm run build' } }, true],
    ['an empty list of secret references', { secret_references: [] }, false],
    ['what clients send besides', { tracked_packages: ['a:1'], route_through_gateway: false }, false],
  ]
  it.each(ROWS)('with %s: %j makes a revision: %j', async (_what, body, makes) => {
    const before = await create(ask, gitDeployment('change'))
    const seen = await patch(before.id, body)
    expect(seen.status).toBe(200)
    expect(seen.body.latest_revision_id !== before.latest_revision_id).toBe(makes)
    const revisions = await revisionsOf(before.id)
    expect(revisions.map(({ id }) => id)).toEqual(
      makes ? [seen.body.latest_revision_id, before.latest_revision_id] : [before.latest_revision_id],
    )
  })

  it.each<[string, unknown]>([
    ['image_uri', { source_revision_config: { image_uri: 'a/b:2' } }],
    ['resource_spec', { source_config: { resource_spec: { cpu: 1 } } }],
    ['an empty resource_spec', { source_config: { resource_spec: {} } }],
  ])('of an image with %s makes a revision', async (_what, body) => {
    const before = await create(ask, imageDeployment('image'))
    expect((await patch(before.id, body)).body.latest_revision_id).not.toBe(before.latest_revision_id)
  })

  it('with custom_url alone makes none', async () => {
    const before = await create(ask, imageDeployment('image'))
    const seen = await patch(before.id, { source_config: { custom_url: 'https://a.example.com' } })
    expect(seen.body).toMatchObject({ url: 'https://a.example.com', latest_revision_id: before.latest_revision_id })
  })

  it('lays the change over what is stored, and replaces resource_spec as a whole', async () => {
    const { id } = await create(ask, imageDeployment('lay', { source_config: { resource_spec: { cpu: 1, memory_mb: 512 } } }))
    const seen = await patch(id, { source_config: { resource_spec: { cpu: 2 }, deployment_type: null } })
    expect(seen.body.source_config).toMatchObject({ resource_spec: { cpu: 2 }, deployment_type: 'prod' })
    expect(seen.body.source_config.resource_spec).not.toHaveProperty('memory_mb')
    expect(seen.body.source_revision_config.image_uri).toBe('registry.example.com/team/agent:1')
  })

  it('describes the latest revision on the deployment, and each revision on itself', async () => {
    const { id, latest_revision_id: first } = await create(ask, gitDeployment('describe'))
    await patch(id, { source_revision_config: { repo_ref: 'next' } })
    expect((await read(id)).source_revision_config.repo_ref).toBe('next')
    expect((await ask({ path: `/v2/deployments/${id}/revisions/${first}` })).body.source_revision_config.repo_ref).toBe('main')
  })

  const FIXED: [string, unknown, unknown][] = [
    ['integration_id', null, '6f1fdc0e-2a1c-4a63-9d1b-0e9f6ad0a001'],
    ['repo_url', 'https://git.example.com/team/agent.git', 'https://git.example.com/team/other.git'],
    ['deployment_type', 'prod', 'dev'],
    ['listener_id', null, '6f1fdc0e-2a1c-4a63-9d1b-0e9f6ad0a001'],
    ['listener_config', null, { k8s_namespace: 'other' }],
  ]
  it.each(FIXED)('refuses to change %s', async (field, now, wanted) => {
    const { id } = await create(ask, gitDeployment('fixed'))
    const seen = await patch(id, { source_config: { [field]: wanted } })
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toBe(
      rule(`'source_config.${field}' cannot change after creation: it is ${JSON.stringify(now)}, the request has ${JSON.stringify(wanted)}`),
    )
    expect((await patch(id, { source_config: { [field]: now } })).status).toBe(200)
  })

  it.each(['source', 'revision_source'])('refuses another source as %s, and takes the same one', async (field) => {
    const { id } = await create(ask, gitDeployment('source'))
    expect((await patch(id, { [field]: 'git_host' })).status).toBe(200)
    const seen = await patch(id, { [field]: 'external_docker' })
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toBe(
      rule(`'source' cannot change after creation: it is 'git_host', the request has 'external_docker' as '${field}'`),
    )
    expect(places(await patch(id, { [field]: 'internal_docker' }))).toEqual([`body.${field}: enum`])
  })

  it('judges a tag against the stored build_on_push, and build_on_push against the stored tag', async () => {
    const source_config = { repo_url: 'https://git.example.com/a/b', build_on_push: true }
    const pushed = await create(ask, gitDeployment('pushed', { source_config }))
    const tag = { source_revision_config: { repo_ref: 'refs/tags/v1' } }
    expect((await patch(pushed.id, tag)).status).toBe(400)
    expect((await patch(pushed.id, { ...tag, source_config: { build_on_push: false } })).status).toBe(200)
    const seen = await patch(pushed.id, { source_config: { build_on_push: true } })
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toBe(
      rule("'source_config.build_on_push' must be false when 'source_revision_config.repo_ref' is a tag (refs/tags/v1)"),
    )
    expect((await patch(pushed.id, { source_config: { build_on_push: true }, source_revision_config: { repo_ref: 'main' } })).status).toBe(200)
  })

  it.each(['a\0b', '\ud800', 'x'.repeat(256), ''])('refuses the display name %j', async (display_name) => {
    const { id } = await create(ask, gitDeployment('display'))
    const seen = await ask({ method: 'PATCH', path: `/v2/deployments/${id}`, raw: JSON.stringify({ display_name }) })
    expect(seen.status).toBe(422)
    expect(seen.body.detail[0].loc).toEqual(['body', 'display_name'])
  })

  it('changes nothing when it refuses', async () => {
    const before = await create(ask, gitDeployment('whole'))
    const seen = await patch(before.id, { display_name: 'X', secrets: [{ name: 'A', value: 'b' }], source_config: { deployment_type: 'dev' } })
    expect(seen.status).toBe(400)
    expect(await read(before.id)).toEqual(before)
  })

  it('takes back what was read, the address of a git source included', async () => {
    const before = await create(ask, gitDeployment('echo'))
    const seen = await patch(before.id, { source_config: before.source_config })
    expect(seen.body).toEqual(before)
    const other = await patch(before.id, { source_config: { ...before.source_config, custom_url: 'https://a.example.com' } })
    expect(other.status).toBe(400)
  })

  it('carries secrets over, and replaces all of them with a list that has some', async () => {
    const { id } = await create(ask, gitDeployment('env', { secrets: [{ name: 'A', value: 'aaaa' }, { name: 'B', value: 'bbbb' }] }))
    expect((await patch(id, { source_revision_config: { repo_ref: 'next' } })).body.secrets).toEqual([
      { name: 'A', value: '' },
      { name: 'B', value: '' },
    ])
    expect((await patch(id, { secrets: [{ name: 'C', value: 'cccc' }] })).body.secrets).toEqual([{ name: 'C', value: '' }])
  })

  it('is 404 for an id that nobody has, and needs a body', async () => {
    expect((await patch(NOBODY, {})).status).toBe(404)
    expect(places(await ask({ method: 'PATCH', path: `/v2/deployments/${NOBODY}` }))).toEqual(['body: missing'])
  })

  it('keeps changes that come together apart: each that makes a revision makes one', async () => {
    const { id } = await create(ask, gitDeployment('together'))
    await Promise.all(Array.from({ length: 6 }, (_, index) => patch(id, { source_revision_config: { repo_ref: `b${index}` } })))
    const revisions = await revisionsOf(id)
    expect(revisions).toHaveLength(7)
    expect((await read(id)).latest_revision_id).toBe(revisions[0]?.id)
  })
})

describe('listing deployments', () => {
  const list = async (query: string) => (await ask({ path: `/v2/deployments?${query}` })).body
  const names = async (query: string): Promise<string[]> => (await list(query)).resources.map(({ name }: { name: string }) => name)

  it('gives the newest first, in pages whose offset leads to the next one', async () => {
    for (const name of ['one', 'two', 'three']) await create(ask, gitDeployment(name))
    expect(await names('')).toEqual(['three', 'two', 'one'])
    const first = await list('limit=2')
    expect(first.resources.map(({ name }: { name: string }) => name)).toEqual(['three', 'two'])
    expect(first.offset).toBe(2)
    expect(await list('limit=2&offset=2')).toMatchObject({ resources: [{ name: 'one' }], offset: 3 })
    expect(await list('limit=2&offset=9')).toEqual({ resources: [], offset: 9 })
  })

  it('filters', async () => {
    const web = await create(ask, gitDeployment('web-agent'))
    const mail = await create(ask, imageDeployment('mail-agent', { source_config: { deployment_type: 'dev' } }))
    const bot = await create(ask, gitDeployment('bot'))
    await database.db.updateTable('deployments').set({ status: 'READY', active_revision_id: bot.latest_revision_id }).where('id', '=', bot.id).execute()
    const rows: [string, string[]][] = [
      ['name_contains=agent', ['mail-agent', 'web-agent']],
      ['name_contains=AGENT', ['mail-agent', 'web-agent']],
      ['name_contains=', ['bot', 'mail-agent', 'web-agent']],
      ['name_contains=%25', []],
      ['name_contains=_', []],
      ['name=web', ['web-agent']],
      ['name=agent', []],
      ['status=READY', ['bot']],
      ['status=AWAITING_DATABASE,%20READY', ['bot', 'mail-agent', 'web-agent']],
      ['status=UNUSED', []],
      ['status=', ['bot', 'mail-agent', 'web-agent']],
      [`deployment_ids=${web.id},${mail.id.toUpperCase()}`, ['mail-agent', 'web-agent']],
      [`deployment_ids=${NOBODY}`, []],
      ['deployment_type=dev', ['mail-agent']],
      ['remote_reconciled=true', ['bot']],
      ['remote_reconciled=0', ['mail-agent', 'web-agent']],
      ['image_version=1', []],
      ['tag_value_ids=x', []],
      ['something_else=1', ['bot', 'mail-agent', 'web-agent']],
    ]
    for (const [query, expected] of rows) expect([query, await names(query)]).toEqual([query, expected])
  })

  it.each([
    ['limit=0', 'query.limit: greater_than_equal', 'Input should be greater than or equal to 1'],
    ['limit=101', 'query.limit: less_than_equal', 'Input should be less than or equal to 100'],
    ['limit=', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=ten', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=1.5', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=1e1', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    [`limit=${'9'.repeat(500)}`, 'query.limit: less_than_equal', 'Input should be less than or equal to 100'],
    ['offset=-1', 'query.offset: greater_than_equal', 'Input should be greater than or equal to 0'],
    ['offset=9999999999', 'query.offset: less_than_equal', 'Input should be less than or equal to 2147483647'],
    ['remote_reconciled=maybe', 'query.remote_reconciled: bool_parsing', 'Input should be a valid boolean, unable to interpret input'],
    [
      'status=READY,GONE',
      'query.status: enum',
      "Input should be 'AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE' or 'UNKNOWN', or several of them with commas between",
    ],
    ['deployment_ids=x', 'query.deployment_ids.0: uuid_parsing', 'Input should be a valid UUID'],
    ['name_contains=a%00', 'query.name_contains: value_error', 'Value error, text must not contain a NUL character'],
  ])('refuses %s', async (query, place, message) => {
    const seen = await ask({ path: `/v2/deployments?${query}` })
    expect(seen.status).toBe(422)
    expect(places(seen)).toEqual([place])
    expect(seen.body.detail[0].msg).toBe(message)
  })

  it('takes limits at their bounds, and the last of several values', async () => {
    for (const query of ['limit=1', 'limit=100', 'offset=2147483647', 'limit=+5', 'limit=0&limit=7']) {
      expect((await ask({ path: `/v2/deployments?${query}` })).status).toBe(200)
    }
  })
})

describe('deleting deployments', () => {
  const remove = (path: string) => ask({ method: 'DELETE', path: `/v2/deployments${path}` })

  it('answers 204 at once, and leaves the rest to the queue', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, it is gone at once')
    const { id } = await create(ask, gitDeployment('gone'))
    expect(await remove(`/${id}?delete_tracing_project=true`)).toMatchObject({ status: 204, body: undefined })
    expect((await read(id)).status).toBe('AWAITING_DELETE')
    expect((await remove(`/${id}`)).status).toBe(204)
    const row = await database.db.selectFrom('deployments').select('delete_tracing_project').where('id', '=', id).executeTakeFirstOrThrow()
    expect(row.delete_tracing_project).toBe(true)
  })

  it('refuses changes of one that is being deleted, and its name until it is gone', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, it is gone at once')
    const { id, latest_revision_id } = await create(ask, gitDeployment('going'))
    await remove(`/${id}`)
    for (const seen of [
      await patch(id, { display_name: 'x' }),
      await ask({ method: 'POST', path: `/v2/deployments/${id}/revisions`, body: {} }),
      await ask({ method: 'POST', path: `/v2/deployments/${id}/revisions/${latest_revision_id}/redeploy` }),
    ]) {
      expect(seen).toMatchObject({ status: 409, body: { detail: `Deployment ID ${id} is being deleted.` } })
    }
    const again = await post(gitDeployment('going'))
    expect(again.status).toBe(409)
    expect(again.body.detail).toContain('It is being deleted: try again when it is gone.')
  })

  it('deletes several, and says which were not there', async () => {
    const [one, two, three] = [await create(ask, gitDeployment('a1')), await create(ask, gitDeployment('a2')), await create(ask, gitDeployment('a3'))]
    const all = await remove(`?deployment_ids=${one.id}&deployment_ids=${two.id}`)
    expect(all.status).toBe(200)
    expect(all.body.deleted.toSorted()).toEqual([one.id, two.id].toSorted())
    const some = await remove(`?deployment_ids=${three.id}&deployment_ids=${NOBODY}`)
    expect(some).toMatchObject({
      status: 207,
      body: { deleted: [three.id], failed: [{ id: NOBODY, detail: `Deployment ID ${NOBODY} not found.` }] },
    })
    expect(await remove(`?deployment_ids=${NOBODY}`)).toMatchObject({ status: 404, body: { detail: `Deployment ID ${NOBODY} not found.` } })
    expect(places(await remove(''))).toEqual(['query.deployment_ids: missing'])
    expect(places(await remove('?deployment_ids=x'))).toEqual(['query.deployment_ids.0: uuid_parsing'])
  })

  it('is 404 for an id that nobody has', async () => {
    expect((await remove(`/${NOBODY}`)).body).toEqual({ detail: `Deployment ID ${NOBODY} not found.` })
  })
})
