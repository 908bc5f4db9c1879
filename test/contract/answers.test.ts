import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  deploymentAddress,
  deploymentAnswerSchema,
  logEntryAnswerSchema,
  logsAnswerSchema,
  pageAnswerSchema,
  revisionAnswerSchema,
} from '../../src/contract/answers.ts'

describe('a deployment, as read', () => {
  it('needs no more than an id and a name', () => {
    const read = deploymentAnswerSchema.parse({ id: 'a', name: 'b' })
    expect(read).toEqual({
      id: 'a',
      name: 'b',
      tenant_id: null,
      display_name: null,
      status: null,
      source: null,
      source_config: {
        integration_id: null,
        repo_url: null,
        deployment_type: null,
        build_on_push: null,
        custom_url: null,
        resource_spec: null,
        listener_id: null,
        listener_config: null,
        install_command: null,
        build_command: null,
      },
      source_revision_config: { repo_ref: null, graph_config_path: null, image_uri: null, repo_commit_sha: null },
      secrets: [],
      latest_revision_id: null,
      url: null,
      image_version: null,
      created_at: null,
      updated_at: null,
    })
    expect(deploymentAnswerSchema.parse({ ...read })).toEqual(read)
  })

  it('tells a service that does not say what serves from one where nothing does', () => {
    expect(deploymentAnswerSchema.parse({ id: 'a', name: 'b' }).active_revision_id).toBeUndefined()
    expect(deploymentAnswerSchema.parse({ id: 'a', name: 'b', active_revision_id: null }).active_revision_id).toBeNull()
  })

  it.each([[{}], [{ id: 'a' }], [{ name: 'b' }], [{ id: '', name: 'b' }], [{ id: 1, name: 'b' }], [null], ['text'], [[]]])(
    'is refused as %j',
    (body) => {
      expect(deploymentAnswerSchema.safeParse(body).success).toBe(false)
    },
  )

  it('keeps unknown fields and values, whatever the dialect', () => {
    const read = deploymentAnswerSchema.parse({
      id: 'a',
      name: 'b',
      status: 'Awaiting_Moon ',
      source: 'internal_docker',
      new_field: { x: 1 },
      source_config: { deployment_type: 'serverless', template_id: 't' },
      source_revision_config: { langgraph_config_path: 'l.json', tracked_packages: ['p'] },
    })
    expect(read).toMatchObject({
      status: 'AWAITING_MOON',
      source: 'internal_docker',
      new_field: { x: 1 },
      source_config: { deployment_type: 'serverless', template_id: 't' },
      source_revision_config: { graph_config_path: 'l.json', tracked_packages: ['p'] },
    })
  })

  it('never carries the values of secrets', () => {
    const secrets = [{ name: 'A', value: 'a-secret-value', more: 'a-secret-value' }]
    expect(deploymentAnswerSchema.parse({ id: 'a', name: 'b', secrets }).secrets).toEqual([{ name: 'A' }])
    expect(deploymentAnswerSchema.parse({ id: 'a', name: 'b', secrets: 'a-secret-value' }).secrets).toEqual([])
    expect(deploymentAnswerSchema.parse({ id: 'a', name: 'b', secrets: null }).secrets).toEqual([])
  })

  it('is not refused for a strange field that is only shown, but for one that is relied on', () => {
    expect(deploymentAnswerSchema.parse({ id: 'a', name: 'b', created_at: 5, display_name: {} }).created_at).toBeNull()
    expect(deploymentAnswerSchema.safeParse({ id: 'a', name: 'b', latest_revision_id: 5 }).success).toBe(false)
  })

  it.each([
    [{ url: 'https://a', source_config: { custom_url: 'https://b' } }, 'https://a'],
    [{ url: null, source_config: { custom_url: 'https://b' } }, 'https://b'],
    [{ url: '', source_config: { custom_url: '' } }, null],
    [{}, null],
  ])('with %j has the address %s', (fields, address) => {
    expect(deploymentAddress(deploymentAnswerSchema.parse({ id: 'a', name: 'b', ...fields }))).toBe(address)
  })
})

describe('a revision, as read', () => {
  it('needs no more than an id and a status, which is upper case', () => {
    expect(revisionAnswerSchema.parse({ id: 'a', status: 'deployed' })).toEqual({
      id: 'a',
      status: 'DEPLOYED',
      status_message: null,
      source: null,
      source_revision_config: { repo_ref: null, graph_config_path: null, image_uri: null, repo_commit_sha: null },
      created_at: null,
      updated_at: null,
    })
  })

  it.each([[{ id: 'a' }], [{ status: 'DEPLOYED' }], [{ id: 'a', status: '' }], [{ id: 'a', status: null }], [null]])(
    'is refused as %j',
    (body) => {
      expect(revisionAnswerSchema.safeParse(body).success).toBe(false)
    },
  )
})

describe('a page, as read', () => {
  const schema = pageAnswerSchema(revisionAnswerSchema)
  it('has resources, and a next offset or none', () => {
    expect(schema.parse({ resources: [], offset: 3 }).offset).toBe(3)
    expect(schema.parse({ resources: [] }).offset).toBeNull()
    expect(schema.safeParse({ offset: 3 }).success).toBe(false)
    expect(schema.safeParse({ resources: [{}], offset: 1 }).success).toBe(false)
    expect(schema.parse({ resources: [{ id: 'a', status: 'x', source: 'github' }], offset: 1 }).resources[0]?.source).toBe(
      'git_host',
    )
  })
})

describe('a log, as read', () => {
  it.each([
    [
      { message: 'm', level: 'Warning', timestamp: 5 },
      { message: 'm', level: 'WARNING', timestamp: 5 },
    ],
    [
      { message: 'm', timestamp: '1970-01-01T00:00:01Z' },
      { message: 'm', level: null, timestamp: 1000 },
    ],
    [
      { message: 'm', timestamp: 'yesterday' },
      { message: 'm', level: null, timestamp: null },
    ],
    [
      { message: 5, level: 5, timestamp: {}, x: 1 },
      { message: '', level: null, timestamp: null, x: 1 },
    ],
    [{}, { message: '', level: null, timestamp: null }],
    ['bare', { message: 'bare', level: null, timestamp: null }],
  ])('line %j', (entry, expected) => {
    expect(logEntryAnswerSchema.parse(entry)).toEqual(expected)
  })

  it('needs its lines', () => {
    expect(logsAnswerSchema.parse({ logs: [] })).toEqual({ logs: [], next_offset: null })
    expect(logsAnswerSchema.safeParse({}).success).toBe(false)
  })
})

describe('reading', () => {
  it('never throws anything but its own refusal', () => {
    fc.assert(
      fc.property(fc.anything(), (body) => {
        for (const schema of [deploymentAnswerSchema, revisionAnswerSchema, logsAnswerSchema]) {
          expect(() => schema.safeParse(body)).not.toThrow()
        }
      }),
    )
  })
})
