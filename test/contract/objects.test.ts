import { describe, expect, it } from 'vitest'
import {
  deploymentCreateSchema,
  deploymentPatchSchema,
  deploymentSchema,
  revisionCreateSchema,
} from '../../src/contract/deployment.ts'
import { deploymentNotFound, httpValidationErrorSchema, revisionNotFound } from '../../src/contract/errors.ts'
import { REGION_NAMES, REGIONS } from '../../src/contract/regions.ts'
import { RESOURCE_SPEC_MAX, resourceSpecSchema } from '../../src/contract/resource-spec.ts'
import { revisionSchema } from '../../src/contract/revision.ts'
import {
  FAILED_REVISION_STATUSES,
  FINAL_REVISION_STATUSES,
  isFailedRevisionStatus,
  isFinalRevisionStatus,
  isKnownRevisionStatus,
  REVISION_STATUSES,
} from '../../src/contract/status.ts'

const ID = '11111111-1111-4111-8111-111111111111'
const create = {
  name: 'My Agent',
  source: 'git_host',
  source_config: { repo_url: 'https://example.com/org/repo', build_on_push: false },
  source_revision_config: { repo_ref: 'main', graph_config_path: 'langgraph.json' },
  secrets: [],
}

describe('a request that creates a deployment', () => {
  it('has its name normalised', () => {
    expect(deploymentCreateSchema.parse(create).name).toBe('my-agent')
  })

  it.each(['name', 'source', 'source_config', 'source_revision_config', 'secrets'])('needs %s', (field) => {
    expect(deploymentCreateSchema.safeParse({ ...create, [field]: undefined }).success).toBe(false)
  })

  it.each([
    { name: '!!!' },
    { source: 'github' },
    { more: 1 },
    { source_config: { more: 1 } },
    { source_config: { integration_id: 'x' } },
    { source_revision_config: { repo_commit_sha: 'x' } },
    { source_revision_config: { repo_ref: 'refs/heads/main' } },
    { secrets: [{ name: 'POSTGRES_URI', value: 'v' }] },
    { secret_references: [{}] },
  ])('is refused with %j', (changes) => {
    expect(deploymentCreateSchema.safeParse({ ...create, ...changes }).success).toBe(false)
  })

  it('may say that there are no secrets of a cluster, which is all that can be said of them', () => {
    for (const secret_references of [[], null, undefined]) {
      expect(deploymentCreateSchema.safeParse({ ...create, secret_references }).success).toBe(true)
    }
    expect(deploymentCreateSchema.safeParse({ ...create, secret_references: ['a'] }).error?.issues[0]?.message).toBe(
      'secret_references name secrets of a cluster, and there is none here: use secrets',
    )
  })

  it('names the place of a fault', () => {
    const result = deploymentCreateSchema.safeParse({ ...create, source_revision_config: { repo_ref: '' } })
    expect(result.error?.issues[0]?.path).toEqual(['source_revision_config', 'repo_ref'])
  })
})

describe('a request that changes a deployment', () => {
  it('may leave out everything, or say null for "unchanged"', () => {
    for (const schema of [deploymentPatchSchema, revisionCreateSchema]) {
      expect(schema.safeParse({}).success).toBe(true)
      expect(schema.safeParse({ source_config: null, source_revision_config: { repo_ref: null }, secrets: null }).success).toBe(
        true,
      )
      expect(schema.safeParse({ name: 'x' }).success).toBe(false)
    }
  })
})

describe('a resource spec', () => {
  it.each([{}, { cpu: 0.1, cpu_limit: 16, memory_mb: 64, min_scale: 0, max_scale: null }, { labels: { a: 'b' } }])(
    'may be %j',
    (spec) => {
      expect(resourceSpecSchema.parse(spec)).toEqual(spec)
    },
  )

  it.each([{ cpu: 0 }, { cpu: 9 }, { cpu_limit: 17 }, { memory_mb: 63 }, { min_scale: 1.5 }, { cpu: '1' }])(
    'may not be %j',
    (spec) => {
      expect(resourceSpecSchema.safeParse(spec).success).toBe(false)
    },
  )
})

describe('the size of a resource spec', () => {
  const ofLength = (length: number) => ({ note: 'x'.repeat(length - '{"note":""}'.length) })

  it('has a bound', () => {
    expect(RESOURCE_SPEC_MAX).toBe(32_768)
    expect(resourceSpecSchema.safeParse(ofLength(32_768)).success).toBe(true)
    expect(resourceSpecSchema.safeParse(ofLength(32_769)).error?.issues[0]?.message).toBe(
      'resource_spec should have 32768 characters at most',
    )
  })
})

describe('what the service answers', () => {
  const config = { repo_ref: 'main', graph_config_path: 'langgraph.json', image_uri: null, repo_commit_sha: null }
  const at = '2026-01-01T00:00:00.000Z'
  const revision = {
    id: ID,
    created_at: at,
    updated_at: at,
    status: 'DEPLOYED',
    status_message: null,
    source: 'git_host',
    source_revision_config: config,
  }

  it('is a revision with every field of the specification', () => {
    expect(revisionSchema.parse(revision)).toEqual(revision)
    for (const field of Object.keys(revision)) {
      const places = revisionSchema.safeParse({ ...revision, [field]: undefined }).error?.issues.map((issue) => issue.path[0])
      expect(places).toEqual([field])
    }
    expect(revisionSchema.safeParse({ ...revision, status: 'REPLACED' }).success).toBe(false)
  })

  it('is a deployment only when it is whole', () => {
    expect(deploymentSchema.safeParse({ id: ID, name: 'a' }).success).toBe(false)
  })

  it('names what was not found', () => {
    expect(deploymentNotFound('a')).toBe('Deployment ID a not found.')
    expect(revisionNotFound('b')).toBe('Revision ID b not found.')
  })

  it('gives the faults of a request with their places', () => {
    const fault = { loc: ['body', 'secrets', 0], msg: 'm', type: 't', input: 1 }
    expect(httpValidationErrorSchema.parse({ detail: [fault] })).toEqual({ detail: [fault] })
    expect(httpValidationErrorSchema.safeParse({}).success).toBe(true)
    expect(httpValidationErrorSchema.safeParse({ detail: [{ loc: [1.5], msg: 'm', type: 't' }] }).success).toBe(false)
  })
})

describe('statuses of a revision', () => {
  it('are thirteen, six of them final, three of those failed', () => {
    expect(REVISION_STATUSES).toHaveLength(13)
    expect(REVISION_STATUSES.filter(isFinalRevisionStatus).toSorted()).toEqual([...FINAL_REVISION_STATUSES].toSorted())
    expect(REVISION_STATUSES.filter(isFailedRevisionStatus)).toEqual([...FAILED_REVISION_STATUSES])
  })

  it('that nobody has heard of are waited for, unless they say that they failed', () => {
    expect(['UNKNOWN', 'REPLACED', 'PAUSED'].map(isFinalRevisionStatus)).toEqual([false, false, false])
    expect(isFinalRevisionStatus('PUSH_FAILED')).toBe(true)
    expect(isFailedRevisionStatus('PUSH_FAILED')).toBe(true)
    expect([isKnownRevisionStatus('UNKNOWN'), isKnownRevisionStatus('PUSH_FAILED')]).toEqual([true, false])
  })
})

describe('regions', () => {
  it('have addresses of their own', () => {
    expect(Object.keys(REGIONS)).toEqual([...REGION_NAMES])
    const urls = Object.values(REGIONS).flatMap((region) => [region.controlPlaneUrl, region.apiUrl])
    expect(new Set(urls).size).toBe(urls.length)
    for (const url of urls) expect(new URL(url)).toMatchObject({ protocol: 'https:', pathname: '/' })
  })
})
