import { describe, expect, it } from 'vitest'
import { exportOf } from '../../../src/action/export/wish.ts'
import { readFields } from '../../../src/action/inputs/read.ts'
import { parseStepInputs, type RawInputs, wantedExport, wantsDeploy } from '../../../src/action/inputs.ts'
import { DEPLOYMENT_ID } from '../support/answers.ts'
import { githubContext } from '../support/github.ts'
import { ASKED_EXPORT, DEFAULT_INPUTS, EMPTY_INPUTS, EXPORT_INPUTS } from '../support/inputs.ts'

const NOW = Date.parse('2026-08-20T12:00:00Z')
const parse = (changes: Partial<RawInputs>) =>
  parseStepInputs({ ...DEFAULT_INPUTS, ...EXPORT_INPUTS, ...changes }, githubContext({ repository: '', ref: '' }), NOW)

describe('the inputs of an export', () => {
  it('are enough by themselves with mode: export', () => {
    const inputs = parse({ mode: 'export', region: 'eu' })
    expect(wantsDeploy(inputs)).toBe(false)
    expect(inputs).toMatchObject({
      warnings: [],
      export: { ...ASKED_EXPORT, apiUrl: 'https://eu.api.smith.langchain.com' },
    })
  })

  it('are warned about when they belong to a deploy', () => {
    expect(parse({ mode: 'export', 'deployment-name': 'agent', tag: 'v1' }).warnings).toEqual([
      'mode is export: deployment-name, tag are not used.',
    ])
  })

  it('come along with those of a deploy', () => {
    const inputs = parse({ 'deployment-name': 'agent', 'image-uri': 'registry.example.com/agent:1' })
    expect(wantsDeploy(inputs)).toBe(true)
    expect(wantedExport(inputs)).toMatchObject({ projectId: DEPLOYMENT_ID })
  })

  it('make one destination of the writings of a prefix', () => {
    const bucket = { 'export-destination-id': '', 'export-bucket': 'lake', 'export-bucket-region': 'eu-central-1' }
    const prefixes = ['/a//b/', 'a/b'].map(
      (prefix) => wantedExport(parse({ ...bucket, mode: 'export', 'export-prefix': prefix }))?.destination,
    )
    expect(prefixes[0]).toEqual({ config: { bucket_name: 'lake', prefix: 'a/b', region: 'eu-central-1' } })
    expect(prefixes[1]).toEqual(prefixes[0])
  })

  it('have no end for a schedule', () => {
    const wish = wantedExport(parse({ mode: 'export', 'export-end': '', 'export-interval-hours': '24' }))
    expect(wish).toMatchObject({ intervalHours: 24 })
    expect(wish).not.toHaveProperty('end')
  })

  it('never send the key of one service to another', () => {
    expect(() => parse({ mode: 'export', 'control-plane-url': 'https://own.example.com' })).toThrow('set api-url')
  })
})

describe('the wish', () => {
  const wish = (changes: Partial<RawInputs>) => wantedExport(parse({ mode: 'export', ...changes }))
  const bucket = { 'export-destination-id': '', 'export-bucket': 'lake', 'export-bucket-region': 'eu-central-1' }
  const pair = { 'export-access-key-id': 'id', 'export-secret-access-key': 'secret' }

  it('has nothing that was not set', () => {
    expect(wish({})).toStrictEqual(ASKED_EXPORT)
  })

  it.each([
    ['api-url', 'https://own.example.com/api', { apiUrl: 'https://own.example.com/api' }],
    ['export-filter', 'eq(is_root, true)', { filter: 'eq(is_root, true)' }],
    ['export-fields', 'id,name', { fields: ['id', 'name'] }],
    ['export-format-version', 'v1', { formatVersion: 'v1' }],
    ['export-format-version', 'v2_beta', { formatVersion: 'v2_beta' }],
    ['export-wait', 'false', { wait: false }],
    ['export-timeout', '2h', { timeoutMs: 7_200_000 }],
    ['export-start', '2026-08-01', { start: { at: '2026-08-01T00:00:00.000000Z' } }],
    ['export-end', '2026-08-20', { end: { at: '2026-08-20T00:00:00.000000Z' } }],
  ] as const)('has %s: %s', (input, text, expected) => expect(wish({ [input]: text })).toMatchObject(expected))

  it('has the address of the main API with a control plane of its own', () => {
    const own = { 'control-plane-url': 'https://own.example.com/api-host', 'api-url': 'https://own.example.com/api' }
    expect(wish(own)?.apiUrl).toBe('https://own.example.com/api')
  })

  it.each([
    ['no prefix', {}, { config: { bucket_name: 'lake', prefix: '', region: 'eu-central-1' } }],
    [
      'another store',
      { 'export-bucket-region': '', 'export-endpoint-url': 'https://store.example.com/' },
      { config: { bucket_name: 'lake', prefix: '', endpoint_url: 'https://store.example.com' } },
    ],
    [
      'a key pair',
      pair,
      {
        config: { bucket_name: 'lake', prefix: '', region: 'eu-central-1' },
        credentials: { access_key_id: 'id', secret_access_key: 'secret' },
      },
    ],
    [
      'temporary credentials',
      { ...pair, 'export-session-token': 'token' },
      {
        config: { bucket_name: 'lake', prefix: '', region: 'eu-central-1' },
        credentials: { access_key_id: 'id', secret_access_key: 'secret', session_token: 'token' },
      },
    ],
  ])('describes a bucket with %s', (_, changes, destination) => {
    expect(wish({ ...bucket, ...changes })?.destination).toStrictEqual(destination)
  })

  it('has the defaults of action.yml by itself', () => {
    const destination = { 'export-destination-id': DEPLOYMENT_ID }
    const fields = {
      mode: 'export',
      'export-project-id': DEPLOYMENT_ID,
      'export-start': { beforeMs: 0 },
      ...destination,
    } as const
    const raw = { ...EMPTY_INPUTS, 'export-project-id': DEPLOYMENT_ID }
    expect(exportOf({ raw, fields, now: NOW, problems: [] })).toStrictEqual({
      apiUrl: 'https://api.smith.langchain.com',
      projectId: DEPLOYMENT_ID,
      destination: { id: DEPLOYMENT_ID },
      start: { beforeMs: 0 },
      wait: true,
      timeoutMs: 259_200_000,
    })
  })
})

describe('what is wrong with the inputs of an export', () => {
  const bucket = { 'export-destination-id': '', 'export-bucket': 'lake', 'export-bucket-region': 'eu-central-1' }
  const problemsOf = (changes: Partial<RawInputs>) => {
    const raw: RawInputs = { ...EMPTY_INPUTS, mode: 'export', 'api-key': 'key-of-the-test', ...EXPORT_INPUTS, ...changes }
    const { fields, problems } = readFields(raw)
    const wish = exportOf({ raw, fields, now: NOW, problems })
    return { wish, problems }
  }
  const missing = (input: string) => ({ input, problem: 'is empty, and an export needs it', fix: `set ${input}` })
  const empty = (input: string, by: string) => ({
    input,
    problem: `is empty, and ${by} is set`,
    fix: `set ${input} from a secret that exists`,
  })
  const both = (input: string) => ({
    input,
    problem: 'and export-destination-id are both set',
    fix: `keep export-destination-id for this destination, or ${input} to have one created`,
  })

  it.each<[string, Partial<RawInputs>, object[]]>([
    ['nothing', {}, []],
    ['no project', { 'export-project-id': '' }, [missing('export-project-id')]],
    ['no workspace', { 'workspace-id': '' }, [missing('workspace-id')]],
    ['no start', { 'export-start': '' }, [missing('export-start')]],
    [
      'the key of one service for another',
      { 'control-plane-url': 'https://own.example.com' },
      [
        {
          input: 'api-url',
          problem: 'is empty, and control-plane-url is set: exports go through the main API of the same service',
          fix: 'set api-url to its address',
        },
      ],
    ],
    [
      'no destination',
      { 'export-destination-id': '' },
      [{ input: 'export-destination-id', problem: 'and export-bucket are both empty', fix: 'set one of them' }],
    ],
    [
      'two destinations',
      { 'export-bucket': 'lake', 'export-bucket-region': 'eu', 'export-endpoint-url': 'https://store.example.com' },
      [both('export-bucket'), both('export-bucket-region'), both('export-endpoint-url')],
    ],
    [
      'what belongs to a bucket, with an id',
      {
        'export-prefix': 'a',
        'export-access-key-id': 'id',
        'export-secret-access-key': 'secret',
        'export-session-token': 'token',
      },
      [both('export-prefix'), both('export-access-key-id'), both('export-secret-access-key'), both('export-session-token')],
    ],
    [
      'a bucket nowhere',
      { ...bucket, 'export-bucket-region': '' },
      [
        {
          input: 'export-bucket-region',
          problem: 'and export-endpoint-url are both empty',
          fix: 'set the region for a bucket of the original provider, or export-endpoint-url for another store',
        },
      ],
    ],
    ['a bucket in a region', bucket, []],
    [
      'a bucket at an endpoint',
      { ...bucket, 'export-bucket-region': '', 'export-endpoint-url': 'https://store.example.com' },
      [],
    ],
    ['a key pair', { ...bucket, 'export-access-key-id': 'id', 'export-secret-access-key': 'secret' }, []],
    [
      'an id without its key',
      { ...bucket, 'export-access-key-id': 'id' },
      [empty('export-secret-access-key', 'export-access-key-id')],
    ],
    [
      'a key without its id',
      { ...bucket, 'export-secret-access-key': 'secret' },
      [empty('export-access-key-id', 'export-secret-access-key')],
    ],
    ['a token alone', { ...bucket, 'export-session-token': 'token' }, [empty('export-access-key-id', 'export-session-token')]],
    [
      'a token with an id',
      { ...bucket, 'export-session-token': 'token', 'export-access-key-id': 'id' },
      [empty('export-secret-access-key', 'export-access-key-id')],
    ],
    [
      'a token with a key',
      { ...bucket, 'export-session-token': 'token', 'export-secret-access-key': 'secret' },
      [empty('export-access-key-id', 'export-secret-access-key')],
    ],
    [
      'a schedule that ends',
      { 'export-interval-hours': '24' },
      [
        {
          input: 'export-end',
          problem: 'and export-interval-hours are both set',
          fix: 'take export-end out for a scheduled export, or export-interval-hours for a one-off',
        },
      ],
    ],
    ['a schedule', { 'export-interval-hours': '24', 'export-end': '' }, []],
    [
      'a one-off without an end',
      { 'export-end': '' },
      [
        {
          input: 'export-end',
          problem: 'is empty, and a one-off export needs it',
          fix: 'set export-end, to now for example, or export-interval-hours for a scheduled export',
        },
      ],
    ],
    [
      'an empty range',
      { 'export-start': 'now' },
      [
        {
          input: 'export-end',
          problem: 'is not later than export-start (2026-08-20T12:00:00.000Z to 2026-08-20T12:00:00.000Z): the end is exclusive',
        },
      ],
    ],
    ['a range of a second', { 'export-start': '-1s' }, []],
    ['the longest range', { 'export-start': '-3660d' }, []],
    [
      'a range that is too long',
      { 'export-start': '2016-01-01', 'export-end': '2026-01-10' },
      [{ input: 'export-end', problem: 'is more than 3660 days later than export-start' }],
    ],
  ])('%s', (_, changes, problems) => expect(problemsOf(changes).problems).toEqual(problems))

  it('leaves an end that cannot be read to its own problem', () => {
    const { problems } = problemsOf({ 'export-end': 'tomorrow' })
    expect(problems).toMatchObject([{ input: 'export-end', problem: 'is not a time' }])
  })

  it.each<[string, Partial<RawInputs>]>([
    ['project', { 'export-project-id': 'x' }],
    ['start', { 'export-start': 'x' }],
    ['destination', { 'export-destination-id': 'x' }],
    ['bucket', { ...bucket, 'export-bucket': 's3://lake' }],
  ])('is no wish without a %s that can be read', (_, changes) => expect(problemsOf(changes).wish).toBeUndefined())

  it.each(['', 'deploy'])('is everything of an export when a step of mode "%s" has no tracing project', (mode) => {
    const { wish, problems } = problemsOf({ ...bucket, mode, 'export-project-id': '', 'export-wait': 'false' })
    const nothing = (input: string) => ({
      input,
      problem: 'is set, and export-project-id is empty: nothing would be exported',
      fix: `set export-project-id, or take ${input} out`,
    })
    expect(wish).toBeUndefined()
    expect(problems).toEqual(['export-bucket', 'export-bucket-region', 'export-start', 'export-end'].map(nothing))
  })
})
