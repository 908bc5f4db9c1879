import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deploymentPatchSchema, revisionCreateSchema } from '../../src/contract/deployment.ts'
import { dialectOf, fromDialect, locToDialect, textToDialect, toDialect } from '../../src/contract/dialects.ts'

describe('dialectOf', () => {
  it.each([
    ['https://api.host.langchain.com', 'vendor'],
    ['https://eu.api.host.langchain.com/', 'vendor'],
    ['https://langchain.com', 'vendor'],
    ['https://corp.example.com/api-host', 'vendor'],
    ['https://corp.example.com/langsmith/api-host/', 'vendor'],
    ['https://corp.example.com/api-hosting', 'spec'],
    ['https://notlangchain.com', 'spec'],
    ['https://langchain.com.example.com', 'spec'],
    ['http://127.0.0.1:8787', 'spec'],
  ])('%s speaks %s', (url, dialect) => {
    expect(dialectOf(url)).toBe(dialect)
  })
})

const spec = {
  name: 'a',
  source: 'git_host',
  revision_source: 'git_host',
  source_config: { repo_url: 'u' },
  source_revision_config: { repo_ref: 'main', graph_config_path: 'x.json' },
}
const vendor = {
  name: 'a',
  source: 'github',
  revision_source: 'github',
  source_config: { repo_url: 'u' },
  source_revision_config: { repo_ref: 'main', langgraph_config_path: 'x.json' },
}

describe('toDialect', () => {
  it('says what the vendor says, in objects and in pages of them', () => {
    expect(toDialect(spec, 'vendor')).toEqual(vendor)
    expect(toDialect({ resources: [spec], offset: 1 }, 'vendor')).toEqual({ resources: [vendor], offset: 1 })
  })

  it('leaves the contract as it is', () => {
    expect(toDialect(spec, 'spec')).toBe(spec)
  })

  it('writes the statuses of exports in Title Case, in lists of them too', () => {
    expect(toDialect({ id: 'a', status: 'COMPLETED' }, 'vendor')).toStrictEqual({ id: 'a', status: 'Completed' })
    expect(toDialect([{ status: 'TIMEDOUT' }, { status: 'INTERVAL_SCHEDULED' }, spec], 'vendor')).toStrictEqual([
      { status: 'TimedOut' },
      { status: 'IntervalScheduled' },
      vendor,
    ])
    expect(toDialect([{ status: 'COMPLETED' }], 'spec')).toStrictEqual([{ status: 'COMPLETED' }])
  })

  it('leaves other statuses, and bodies without one', () => {
    for (const body of [{ status: 'DEPLOYED' }, { status: 'constructor' }, { status: 5 }, { id: 'a' }, null, 'COMPLETED', 7]) {
      expect(toDialect(body, 'vendor')).toStrictEqual(body)
    }
  })

  it('does not change what it is given', () => {
    const before = structuredClone(spec)
    toDialect(spec, 'vendor')
    expect(spec).toEqual(before)
  })
})

describe('fromDialect', () => {
  it('reads both', () => {
    expect(fromDialect(vendor)).toEqual(spec)
    expect(fromDialect(spec)).toEqual(spec)
  })

  it('takes the name that carries a value where both are there', () => {
    for (const config of [
      { graph_config_path: null, langgraph_config_path: 'x' },
      { langgraph_config_path: 'x', graph_config_path: null },
      { graph_config_path: 'x', langgraph_config_path: null },
    ]) {
      expect(fromDialect({ source_revision_config: config })).toEqual({ source_revision_config: { graph_config_path: 'x' } })
    }
  })

  it('keeps unknown sources, fields and things that are no objects', () => {
    const odd = { source: 'internal_docker', source_revision_config: { tracked: [] }, other: { source: 'github' } }
    expect(fromDialect(odd)).toEqual(odd)
    for (const body of [null, 1, 'github', ['github'], { source: null, source_revision_config: 'x' }])
      expect(fromDialect(body)).toEqual(body)
  })

  it('adds nothing to a body', () => {
    expect(fromDialect({})).toStrictEqual({})
    expect(revisionCreateSchema.safeParse(fromDialect({ secrets: [] })).success).toBe(true)
  })

  it('leaves sources and fields that JavaScript has names for', () => {
    const odd = { source: 'constructor', source_revision_config: { constructor: 1, toString: 2 } }
    expect(fromDialect(odd)).toStrictEqual(odd)
    const body: unknown = JSON.parse('{"source_revision_config": {"__proto__": {"repo_ref": "main"}}}')
    const { error } = deploymentPatchSchema.safeParse(fromDialect(body))
    expect(error?.issues[0]).toMatchObject({ code: 'unrecognized_keys', keys: ['__proto__'] })
  })

  it('undoes toDialect', () => {
    const text = fc.option(fc.string())
    const body = fc.record(
      {
        name: fc.string(),
        source: fc.constantFrom('git_host', 'external_docker', 'other'),
        source_revision_config: fc.record({ repo_ref: text, graph_config_path: text, image_uri: text }, { requiredKeys: [] }),
        extra: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(body, (sent) => {
        expect(fromDialect(toDialect(sent, 'vendor'))).toEqual(sent)
        expect(fromDialect(toDialect({ resources: [sent], offset: 0 }, 'vendor'))).toEqual({ resources: [sent], offset: 0 })
      }),
    )
  })
})

describe('locToDialect', () => {
  it('names the place in the words of the dialect', () => {
    const loc = ['body', 'source_revision_config', 'graph_config_path', 0]
    expect(locToDialect(loc, 'vendor')).toEqual(['body', 'source_revision_config', 'langgraph_config_path', 0])
    expect(locToDialect(loc, 'spec')).toEqual(loc)
    expect(locToDialect(['body', 'constructor'], 'vendor')).toEqual(['body', 'constructor'])
  })
})

describe('textToDialect', () => {
  it.each([
    ['graph_config_path should be a path', 'langgraph_config_path should be a path'],
    ["source should be 'git_host' or 'external_docker'", "source should be 'github' or 'external_docker'"],
    ['TIMEDOUT or INTERVAL_SCHEDULED', 'TimedOut or IntervalScheduled'],
    ['my_git_host, git_hosts and NOT_COMPLETED', 'my_git_host, git_hosts and NOT_COMPLETED'],
  ])('says %j as %j', (text, words) => {
    expect(textToDialect(text, 'vendor')).toBe(words)
    expect(textToDialect(text, 'spec')).toBe(text)
  })
})
