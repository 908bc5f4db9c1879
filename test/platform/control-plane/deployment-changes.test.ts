import { describe, expect, it } from 'vitest'
import { create, gitDeployment, imageDeployment } from '../support/control-plane.ts'
import { NOBODY, placesOf, setPlaneScene, sourceRule } from './support/scene.ts'

const scene = setPlaneScene()
const { ask, patch, read, revisionsOf } = scene

describe('changing a deployment', () => {
  const ROWS: [string, unknown, boolean][] = [
    ['nothing', {}, false],
    [
      'nulls',
      {
        source_config: null,
        source_revision_config: { repo_ref: null, graph_config_path: null, image_uri: null },
        secrets: null,
      },
      false,
    ],
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
      sourceRule(
        `'source_config.${field}' cannot change after creation: it is ${JSON.stringify(now)}, the request has ${JSON.stringify(wanted)}`,
      ),
    )
    expect((await patch(id, { source_config: { [field]: now } })).status).toBe(200)
  })

  it.each(['source', 'revision_source'])('refuses another source as %s, and takes the same one', async (field) => {
    const { id } = await create(ask, gitDeployment('source'))
    expect((await patch(id, { [field]: 'git_host' })).status).toBe(200)
    const seen = await patch(id, { [field]: 'external_docker' })
    expect(seen.status).toBe(400)
    expect(seen.body.detail).toBe(
      sourceRule(`'source' cannot change after creation: it is 'git_host', the request has 'external_docker' as '${field}'`),
    )
    expect(placesOf(await patch(id, { [field]: 'internal_docker' }))).toEqual([`body.${field}: enum`])
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
      sourceRule("'source_config.build_on_push' must be false when 'source_revision_config.repo_ref' is a tag (refs/tags/v1)"),
    )
    expect(
      (await patch(pushed.id, { source_config: { build_on_push: true }, source_revision_config: { repo_ref: 'main' } })).status,
    ).toBe(200)
  })

  it.each(['a\0b', '\ud800', 'x'.repeat(256), ''])('refuses the display name %j', async (display_name) => {
    const { id } = await create(ask, gitDeployment('display'))
    const seen = await ask({ method: 'PATCH', path: `/v2/deployments/${id}`, raw: JSON.stringify({ display_name }) })
    expect(seen.status).toBe(422)
    expect(seen.body.detail[0].loc).toEqual(['body', 'display_name'])
  })

  it('changes nothing when it refuses', async () => {
    const before = await create(ask, gitDeployment('whole'))
    const seen = await patch(before.id, {
      display_name: 'X',
      secrets: [{ name: 'A', value: 'b' }],
      source_config: { deployment_type: 'dev' },
    })
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
    const { id } = await create(
      ask,
      gitDeployment('env', {
        secrets: [
          { name: 'A', value: 'aaaa' },
          { name: 'B', value: 'bbbb' },
        ],
      }),
    )
    expect((await patch(id, { source_revision_config: { repo_ref: 'next' } })).body.secrets).toEqual([
      { name: 'A', value: '' },
      { name: 'B', value: '' },
    ])
    expect((await patch(id, { secrets: [{ name: 'C', value: 'cccc' }] })).body.secrets).toEqual([{ name: 'C', value: '' }])
  })

  it('is 404 for an id that nobody has, and needs a body', async () => {
    expect((await patch(NOBODY, {})).status).toBe(404)
    expect(placesOf(await ask({ method: 'PATCH', path: `/v2/deployments/${NOBODY}` }))).toEqual(['body: missing'])
  })

  it('keeps changes that come together apart: each that makes a revision makes one', async () => {
    const { id } = await create(ask, gitDeployment('together'))
    await Promise.all(Array.from({ length: 6 }, (_, index) => patch(id, { source_revision_config: { repo_ref: `b${index}` } })))
    const revisions = await revisionsOf(id)
    expect(revisions).toHaveLength(7)
    expect((await read(id)).latest_revision_id).toBe(revisions[0]?.id)
  })
})
