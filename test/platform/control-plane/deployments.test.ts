import { describe, expect, it } from 'vitest'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { create, gitDeployment, imageDeployment } from '../support/control-plane.ts'
import { createWorkspace } from '../support/database.ts'
import { NOBODY, placesOf, setPlaneScene, sourceRule } from './support/scene.ts'

const scene = setPlaneScene()
const { ask, patch, post, read, revisionsOf } = scene

describe('creating a deployment', () => {
  it('answers 201 with its id and the id of its first revision', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, the revision goes on')
    const seen = await post(gitDeployment('first'))
    expect(seen.status).toBe(201)
    expect(seen.body).toMatchObject({
      name: 'first',
      tenant_id: scene.workspace.id,
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
    expect(image.body).toMatchObject({
      url: 'https://agent.example.com',
      source_config: { custom_url: 'https://agent.example.com' },
    })
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
    const elsewhere = scene.plane.as((await createWorkspace(scene.database.db)).key)
    expect((await elsewhere({ method: 'POST', path: '/v2/deployments', body: gitDeployment('taken') })).status).toBe(201)
  })

  it('lets one of two creates of a name that race win', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => post(gitDeployment('race'))))
    expect(all.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409, 409, 409])
    for (const { status, body } of all)
      if (status === 409) expect(body.detail).toContain('A deployment named race already exists')
  })

  it('refuses a name that a tracing project has, in the words of the hosted service', async () => {
    await scene.database.db
      .insertInto('tracing_projects')
      .values({ id: NOBODY, workspace_id: scene.workspace.id, name: 'traced' })
      .execute()
    const seen = await post(gitDeployment('traced'))
    expect(seen.status).toBe(409)
    expect(seen.body.detail).toBe(
      'Deployments create a tracing project in LangSmith with the same name as the deployment. ' +
        'There already exists a project in LangSmith named: traced.',
    )
    await scene.database.db.deleteFrom('tracing_projects').where('id', '=', NOBODY).execute()
    expect((await post(gitDeployment('traced'))).status).toBe(201)
  })

  it.each<[string, Record<string, unknown>, string]>([
    [
      'a git source without a repository',
      gitDeployment('r', { source_config: {} }),
      "'source_config.repo_url' is required for the source 'git_host'",
    ],
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
    expect(seen.body.detail).toBe(sourceRule(text))
    expect((await ask({ path: '/v2/deployments' })).body.resources).toEqual([])
  })

  it('takes a tag that is not built on push', async () => {
    const body = gitDeployment('tagged', { source_revision_config: { repo_ref: 'refs/tags/v1.2.3' } })
    expect((await post(body)).body.source_revision_config.repo_ref).toBe('refs/tags/v1.2.3')
  })

  it.each([
    'refs/heads/main',
    'refs/pull/1/head',
    '--upload-pack=x',
    '-b',
    '../x',
    'a..b',
    'a b',
    'x.lock',
    '',
    '@{u}',
    'a'.repeat(300),
  ])('refuses the ref %j', async (repo_ref) => {
    expect(placesOf(await post(gitDeployment('ref', { source_revision_config: { repo_ref } })))).toEqual([
      'body.source_revision_config.repo_ref: value_error',
    ])
  })

  it.each(['../langgraph.json', '/etc/x.json', 'a/../b.json', 'langgraph.yaml', '--x.json', 'a\\b.json', ''])(
    'refuses the configuration path %j',
    async (graph_config_path) => {
      expect(placesOf(await post(gitDeployment('path', { source_revision_config: { graph_config_path } })))).toEqual([
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
    expect(placesOf(seen).toSorted()).toEqual(
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
        integration_id: null,
        repo_url: null,
        deployment_type: 'dev',
        build_on_push: null,
        custom_url: null,
        resource_spec: {},
        listener_id: '6F1FDC0E-2A1C-4A63-9D1B-0E9F6AD0A001',
        listener_config: { k8s_namespace: 'agents' },
        install_command: null,
        build_command: null,
        template_id: null,
      },
      source_revision_config: {
        repo_ref: null,
        langgraph_config_path: null,
        image_uri: 'r/a@sha256:1',
        source_tarball_path: null,
      },
      secrets: null,
      secret_references: null,
      display_name: 'Clients',
      tracked_packages: ['langgraph:1.4.18'],
      route_through_gateway: true,
    })
    expect(seen.status).toBe(201)
    expect(seen.body).toMatchObject({
      display_name: 'Clients',
      source_config: { deployment_type: 'dev', resource_spec: {} },
      secrets: [],
    })
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

describe('deleting deployments', () => {
  const remove = (path: string) => ask({ method: 'DELETE', path: `/v2/deployments${path}` })

  it('answers 204 at once, and leaves the rest to the queue', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, it is gone at once')
    const { id } = await create(ask, gitDeployment('gone'))
    expect(await remove(`/${id}?delete_tracing_project=true`)).toMatchObject({ status: 204, body: undefined })
    expect((await read(id)).status).toBe('AWAITING_DELETE')
    expect((await remove(`/${id}`)).status).toBe(204)
    const row = await scene.database.db
      .selectFrom('deployments')
      .select('delete_tracing_project')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
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
    const [one, two, three] = [
      await create(ask, gitDeployment('a1')),
      await create(ask, gitDeployment('a2')),
      await create(ask, gitDeployment('a3')),
    ]
    const all = await remove(`?deployment_ids=${one.id}&deployment_ids=${two.id}`)
    expect(all.status).toBe(200)
    expect(all.body.deleted.toSorted()).toEqual([one.id, two.id].toSorted())
    const some = await remove(`?deployment_ids=${three.id}&deployment_ids=${NOBODY}`)
    expect(some).toMatchObject({
      status: 207,
      body: { deleted: [three.id], failed: [{ id: NOBODY, detail: `Deployment ID ${NOBODY} not found.` }] },
    })
    expect(await remove(`?deployment_ids=${NOBODY}`)).toMatchObject({
      status: 404,
      body: { detail: `Deployment ID ${NOBODY} not found.` },
    })
    expect(placesOf(await remove(''))).toEqual(['query.deployment_ids: missing'])
    expect(placesOf(await remove('?deployment_ids=x'))).toEqual(['query.deployment_ids.0: uuid_parsing'])
  })

  it('is 404 for an id that nobody has', async () => {
    expect((await remove(`/${NOBODY}`)).body).toEqual({ detail: `Deployment ID ${NOBODY} not found.` })
  })
})
