import { describe, expect, it } from 'vitest'
import type { GithubContext } from '../../src/action/github/context.ts'
import { parseStepInputs, type RawInputs, type StepInputs, wantedExport, wantsDeploy } from '../../src/action/inputs.ts'
import { DEPLOYMENT_ID, DIGEST } from './support/answers.ts'
import { githubContext } from './support/github.ts'
import { ASKED_EXPORT, DEFAULT_INPUTS, EMPTY_INPUTS, EXPORT_INPUTS, refusal } from './support/inputs.ts'

const NOW = Date.parse('2026-08-20T12:00:00Z')
const REPO = 'https://github.com/acme/agents'
const HEAD = 'b'.repeat(40)
const ID = DEPLOYMENT_ID

type Given = Partial<RawInputs>

const parse = (given: Given, context = githubContext()): StepInputs =>
  parseStepInputs({ ...DEFAULT_INPUTS, 'deployment-name': 'agent', ...given }, context, NOW)

/** The same without what action.yml fills in. */
const parseBare = (given: Given, context = githubContext()): StepInputs =>
  parseStepInputs({ ...EMPTY_INPUTS, 'api-key': 'key-of-the-test', 'deployment-name': 'agent', ...given }, context, NOW)

/** One problem is the whole sentence; of several each has a line, below a title. */
function problems(given: Given, context = githubContext()): string[] {
  const lines = refusal(() => parse(given, context)).split('\n')
  return lines.length === 1 ? lines : lines.slice(1).map((line) => line.replace(/^- /, ''))
}

const pull = (action: string, state: string): GithubContext =>
  githubContext({
    eventName: 'pull_request',
    ref: 'refs/pull/7/merge',
    payload: {
      action,
      number: 7,
      pull_request: {
        number: 7,
        state,
        head: { ref: 'topic', sha: HEAD, repo: { full_name: 'acme/agents' } },
        base: { repo: { full_name: 'acme/agents' } },
      },
    },
  })
const opened = pull('opened', 'open')
const closed = pull('closed', 'closed')
const release = githubContext({
  eventName: 'release',
  ref: 'refs/tags/v2.0.0',
  payload: { action: 'published', release: { tag_name: 'v2.0.0' } },
})

const COMMON = {
  apiKey: 'key-of-the-test',
  controlPlaneUrl: 'https://api.host.langchain.com',
  dialect: 'vendor',
  dryRun: false,
  onTimeout: 'leave',
  onCancel: 'leave',
  summary: true,
  warnings: [],
}
const DEPLOY = { sourceConfig: {}, skipUnchanged: false, rollbackOnFailure: false, wait: true, timeoutMs: 1_800_000 }

describe('the inputs of each mode', () => {
  it.each([
    ['with the defaults of action.yml', parse],
    ['without them', parseBare],
  ])('are complete %s', (_, read) => {
    expect(read({ mode: 'deploy', 'image-uri': DIGEST })).toEqual({
      mode: 'deploy',
      ...COMMON,
      ...DEPLOY,
      target: { name: 'agent' },
      source: { kind: 'external_docker', imageUri: DIGEST },
    })
    expect(read({ mode: 'preview' }, opened)).toEqual({
      mode: 'preview',
      ...COMMON,
      ...DEPLOY,
      target: { name: 'agent-pr-7' },
      source: {
        kind: 'git_host',
        repoUrl: REPO,
        repoRef: 'topic',
        configPath: 'langgraph.json',
        commit: HEAD,
        eventCommit: HEAD,
      },
      preview: {
        baseName: 'agent',
        pullRequest: 7,
        eventState: 'open',
        headSha: HEAD,
        repositories: [REPO, REPO],
        closing: false,
      },
    })
    expect(read({ mode: 'teardown' }, closed)).toEqual({
      mode: 'teardown',
      ...COMMON,
      target: { name: 'agent-pr-7' },
      timeoutMs: 1_800_000,
      preview: {
        baseName: 'agent',
        pullRequest: 7,
        eventState: 'closed',
        headSha: HEAD,
        repositories: [REPO, REPO],
        closing: true,
      },
    })
    expect(read({ mode: 'sweep' })).toEqual({
      mode: 'sweep',
      ...COMMON,
      timeoutMs: 1_800_000,
      sweep: { baseName: 'agent', repoUrl: REPO, ttlMs: 7 * 86_400_000 },
    })
    expect(read({ mode: 'export', 'deployment-name': '', ...EXPORT_INPUTS })).toEqual({
      mode: 'export',
      ...COMMON,
      workspaceId: ID,
      export: ASKED_EXPORT,
    })
    expect(read({ mode: 'promote', 'promote-from': 'staging' }, release)).toMatchObject({
      mode: 'promote',
      ...COMMON,
      ...DEPLOY,
      target: { name: 'agent' },
      promote: { from: { name: 'staging' }, tag: 'refs/tags/v2.0.0' },
    })
  })

  it('are those of a teardown for a pull request that was closed', () => {
    const { mode, warnings } = parse({ mode: 'preview', 'smoke-test-input': '{"messages":[]}' }, closed)
    expect({ mode, warnings }).toEqual({ mode: 'teardown', warnings: [] })
  })

  it('name the deployment of a promotion by its id as well', () => {
    const given: Given = { mode: 'promote', 'promote-from': 'staging', 'deployment-name': '', 'deployment-id': ID }
    expect(parse(given, release)).toMatchObject({ mode: 'promote', target: { id: ID } })
  })
})

describe('what is asked of every mode', () => {
  const ASKED: Given = {
    'workspace-id': ID,
    'control-plane-url': 'https://corp.example.com',
    'dry-run': 'true',
    'on-timeout': 'interrupt',
    'on-cancel': 'interrupt',
    summary: 'false',
    environment: 'production',
    comment: 'true',
    'github-token': 'ghs-1234',
  }
  const HEARD = {
    workspaceId: ID,
    controlPlaneUrl: 'https://corp.example.com',
    dialect: 'spec',
    dryRun: true,
    onTimeout: 'interrupt',
    onCancel: 'interrupt',
    summary: false,
    environment: 'production',
    comment: true,
    githubToken: 'ghs-1234',
  }

  it.each<[Given, GithubContext]>([
    [{ mode: 'deploy' }, githubContext()],
    [{ mode: 'preview' }, opened],
    [{ mode: 'teardown' }, closed],
    [{ mode: 'sweep' }, githubContext()],
    [{ mode: 'promote', 'promote-from': 'staging' }, release],
    [{ mode: 'export', ...EXPORT_INPUTS, 'api-url': 'https://api.example.com' }, githubContext()],
  ])('is heard by %j', (given, context) => {
    expect(parse({ ...ASKED, ...given }, context)).toMatchObject(HEARD)
  })

  it.each([
    ['us', 'https://api.host.langchain.com'],
    ['eu', 'https://eu.api.host.langchain.com'],
  ])('is sent to the region %s', (region, controlPlaneUrl) => {
    expect(parse({ mode: 'sweep', region })).toMatchObject({ controlPlaneUrl, dialect: 'vendor' })
  })

  it('is said in the dialect that is named, or in that of the address', () => {
    const dialectOf = (given: Given) => parse({ mode: 'sweep', ...given }).dialect
    expect(dialectOf({ dialect: 'auto' })).toBe('vendor')
    expect(dialectOf({ dialect: 'spec' })).toBe('spec')
    expect(dialectOf({ 'control-plane-url': 'https://corp.example.com', dialect: 'auto' })).toBe('spec')
    expect(dialectOf({ 'control-plane-url': 'https://corp.example.com', dialect: 'vendor' })).toBe('vendor')
  })

  it.each<[Given, GithubContext]>([
    [{ mode: 'teardown' }, closed],
    [{ mode: 'sweep' }, githubContext()],
    [{ mode: 'deploy' }, githubContext()],
  ])('is given the time that is set: %j', (given, context) => {
    expect(parse({ ...given, timeout: '5m' }, context)).toMatchObject({ timeoutMs: 300_000 })
  })
})

it('hands on what a revision is made from', () => {
  const given: Given = {
    'integration-id': ID,
    'deployment-type': 'prod',
    'build-on-push': 'true',
    'source-config': 'install_command: npm ci',
    secrets: 'A=hunter2-text',
    'skip-unchanged': 'true',
    'rollback-on-failure': 'true',
  }
  expect(parse(given)).toMatchObject({
    integrationId: ID,
    deploymentType: 'prod',
    buildOnPush: true,
    sourceConfig: { install_command: 'npm ci' },
    secrets: [{ name: 'A', value: 'hunter2-text' }],
    skipUnchanged: true,
    rollbackOnFailure: true,
  })
  expect(parse({ wait: 'false' })).toMatchObject({ wait: false })
})

describe('the smoke test', () => {
  const test: Given = { 'smoke-test-input': '{"messages":[]}' }
  const testOf = (given: Given, context?: GithubContext) => {
    const inputs = parse({ ...test, ...given }, context)
    return wantsDeploy(inputs) ? inputs.smokeTest : undefined
  }
  const USUAL = { input: { messages: [] }, configPath: 'langgraph.json', streamMode: 'updates', timeoutMs: 120_000 }

  it('is read with what belongs to it', () => {
    expect(testOf({})).toEqual(USUAL)
    const given = {
      'smoke-test-assistant': 'agent',
      'smoke-test-expect': 'hello',
      'smoke-test-stream-mode': 'values',
      'smoke-test-timeout': '30s',
    }
    expect(testOf(given)).toMatchObject({
      assistant: 'agent',
      streamMode: 'values',
      timeoutMs: 30_000,
      expect: expect.anything() as unknown,
    })
  })

  it.each<[string, Given, string | undefined]>([
    ['this repository, by its address', { 'repo-url': `${REPO}.git` }, 'langgraph.json'],
    ['another file of it', { 'config-path': 'apps/langgraph.json' }, 'apps/langgraph.json'],
    ['an image', { 'image-uri': DIGEST }, 'langgraph.json'],
    ['another repository', { 'repo-url': 'https://github.com/acme/other' }, undefined],
  ])('looks into the checkout for the graphs of %s', (_, given, configPath) => {
    expect(testOf(given)?.configPath).toBe(configPath)
  })

  it('does not look there where the event tells no repository', () => {
    expect(testOf({ 'repo-url': REPO, 'repo-ref': 'main' }, githubContext({ repository: '' }))).not.toHaveProperty('configPath')
  })

  it('is warned about where nothing waits for the revision', () => {
    const SKIPPED = 'The smoke test is skipped: with wait: false nothing is known to serve when the step ends.'
    expect(parse({ ...test, wait: 'false' }).warnings).toEqual([SKIPPED])
    expect(parse(test).warnings).toEqual([])
    expect(parse({ wait: 'false' }).warnings).toEqual([])
  })
})

describe('the warnings', () => {
  const UNENCRYPTED = expect.stringContaining('unencrypted') as string
  const PLAIN = { 'control-plane-url': 'http://platform.internal' }

  it.each<[Given, GithubContext, string]>([
    [{ mode: 'teardown', tag: 'v1' }, closed, 'mode is teardown: tag is not used.'],
    [{ mode: 'sweep', tag: 'v1', environment: 'production' }, githubContext(), 'mode is sweep: tag, environment are not used.'],
  ])('of %j name what the mode does not use, after those of the address', (given, context, unused) => {
    expect(parse(given, context).warnings).toEqual([unused])
    expect(parse({ ...given, ...PLAIN }, context).warnings).toEqual([UNENCRYPTED, unused])
  })

  it('of an export are about the address that it goes to, and about what it does not use', () => {
    const plain = { ...EXPORT_INPUTS, 'api-url': 'http://platform.internal' }
    const alone = { mode: 'export', 'deployment-name': '' }
    expect(parse({ ...alone, ...EXPORT_INPUTS }).warnings).toEqual([])
    expect(parse({ ...alone, ...plain }).warnings).toEqual([UNENCRYPTED])
    expect(parse({ ...alone, ...plain, tag: 'v1' }).warnings).toEqual([UNENCRYPTED, 'mode is export: tag is not used.'])
    expect(parse(plain).warnings).toEqual([UNENCRYPTED])
    expect(parse({ ...plain, ...PLAIN }).warnings).toEqual([UNENCRYPTED, UNENCRYPTED])
    expect(parse({ 'api-url': 'http://platform.internal' }).warnings).toEqual([])
  })
})

it.each<[string, Given, GithubContext, boolean, boolean]>([
  ['a deploy', { mode: 'deploy' }, githubContext(), true, false],
  ['a deploy and an export', { mode: 'deploy', ...EXPORT_INPUTS }, githubContext(), true, true],
  ['a preview and an export', { mode: 'preview', ...EXPORT_INPUTS }, opened, true, true],
  ['a promotion', { mode: 'promote', 'promote-from': 'staging' }, release, true, false],
  ['a teardown', { mode: 'teardown' }, closed, false, false],
  ['a sweep', { mode: 'sweep' }, githubContext(), false, false],
  ['an export', { mode: 'export', 'deployment-name': '', ...EXPORT_INPUTS }, githubContext(), false, true],
])('tells whether a revision is made and whether traces are exported: %s', (_, given, context, deploys, exports) => {
  const inputs = parse(given, context)
  expect([wantsDeploy(inputs), wantedExport(inputs) !== undefined]).toEqual([deploys, exports])
})

describe('a refusal', () => {
  it.each<[Given, GithubContext, string[]]>([
    [{ mode: 'preview', 'deployment-name': '' }, opened, ['deployment-name']],
    [{ mode: 'preview', 'deployment-id': ID, tag: 'v1' }, opened, ['deployment-id', 'tag']],
    [{ mode: 'preview' }, githubContext(), ['mode']],
    [{ mode: 'teardown', 'deployment-id': ID }, closed, ['deployment-id']],
    [{ mode: 'teardown' }, githubContext(), ['mode']],
    [{ mode: 'sweep', 'deployment-id': ID }, githubContext(), ['deployment-id']],
    [{ mode: 'sweep' }, githubContext({ repository: '' }), ['mode']],
    [{ mode: 'promote' }, release, ['promote-from']],
    [{ mode: 'promote', 'promote-from': 'staging', 'deployment-id': ID }, release, ['deployment-id']],
    [{ mode: 'export', ...EXPORT_INPUTS, 'export-start': '' }, githubContext(), ['export-start']],
    [{ ...EXPORT_INPUTS, 'export-start': '', tag: 'v1', 'repo-ref': 'main' }, githubContext(), ['export-start', 'tag']],
  ])('of %j names each input that is wrong', (given, context, names) => {
    const found = problems(given, context).map((line) => /^\S+/.exec(line)?.[0])
    expect([...new Set(found)].toSorted()).toEqual(names)
  })

  it.each(['deploy', 'preview', 'teardown', 'sweep', 'promote', 'export'])('of mode %s asks for a key', (mode) => {
    const context = { preview: opened, teardown: closed, promote: release }[mode] ?? githubContext()
    const given = {
      mode,
      'api-key': '',
      ...(mode === 'promote' ? { 'promote-from': 'staging' } : {}),
      ...(mode === 'export' ? EXPORT_INPUTS : {}),
    }
    expect(problems(given, context)).toEqual([expect.stringMatching(/^api-key is required and empty/)])
  })
})
