import { describe, expect, it } from 'vitest'
import { parseInputs, type RawInputs } from '../../src/action/inputs.ts'
import { type InputName } from '../../src/action/registry.ts'
import { ActionFailure } from '../../src/action/report/error-codes.ts'
import { DEPLOYMENT_ID, DIGEST } from './support/answers.ts'
import { githubContext as context } from './support/github.ts'
import { DEFAULT_INPUTS, EMPTY_INPUTS } from './support/inputs.ts'

const raw = (changes: Partial<RawInputs> = {}): RawInputs => ({ ...DEFAULT_INPUTS, 'deployment-name': 'agent', ...changes })

function failure(changes: Partial<RawInputs>, github = context()): ActionFailure {
  try {
    parseInputs(raw(changes), github)
  } catch (error) {
    if (error instanceof ActionFailure) return error
    throw error
  }
  throw new Error('the inputs were accepted')
}

describe('parseInputs', () => {
  it('takes the source from the event, and everything else from the defaults', () => {
    expect(parseInputs(raw(), context())).toEqual({
      apiKey: 'key-of-the-test',
      controlPlaneUrl: 'https://api.host.langchain.com',
      dialect: 'vendor',
      target: { name: 'agent' },
      source: {
        kind: 'git_host',
        repoUrl: 'https://github.com/acme/agents',
        repoRef: 'main',
        configPath: 'langgraph.json',
        commit: 'a'.repeat(40),
        eventCommit: 'a'.repeat(40),
      },
      sourceConfig: {},
      skipUnchanged: false,
      rollbackOnFailure: false,
      dryRun: false,
      wait: true,
      timeoutMs: 1_800_000,
      onTimeout: 'leave',
      onCancel: 'leave',
      summary: true,
      warnings: [],
    })
  })

  it('works without the defaults of action.yml as well', () => {
    const bare = { ...EMPTY_INPUTS, 'api-key': 'key-of-the-test', 'deployment-name': 'agent' }
    expect(parseInputs(bare, context())).toEqual(parseInputs(raw(), context()))
  })

  it('takes an image as the source', () => {
    const { source, buildOnPush } = parseInputs(raw({ 'image-uri': DIGEST }), context({ repository: '', ref: '' }))
    expect(source).toEqual({ kind: 'external_docker', imageUri: DIGEST })
    expect(buildOnPush).toBeUndefined()
  })

  it('addresses the region, or the address that overrides it, in the dialect of its host', () => {
    expect(parseInputs(raw({ region: 'eu' }), context()).controlPlaneUrl).toBe('https://eu.api.host.langchain.com')
    const own = parseInputs(raw({ region: 'eu', 'control-plane-url': 'http://platform.internal/' }), context())
    expect(own).toMatchObject({
      controlPlaneUrl: 'http://platform.internal',
      dialect: 'spec',
      warnings: [expect.stringContaining('unencrypted')],
    })
    expect(parseInputs(raw({ 'control-plane-url': 'https://corp.example.com/api-host' }), context()).dialect).toBe('vendor')
    expect(
      parseInputs(raw({ 'control-plane-url': 'https://corp.example.com/api-host', dialect: 'spec' }), context()).dialect,
    ).toBe('spec')
  })

  it.each(['v1.2.3', 'refs/tags/v1.2.3'])('makes a full ref of the tag %s, which implies that pushes are not built', (tag) => {
    expect(parseInputs(raw({ tag }), context())).toMatchObject({ source: { repoRef: 'refs/tags/v1.2.3' }, buildOnPush: false })
  })

  it('implies the same for a tag that comes from the event or from repo-ref', () => {
    expect(parseInputs(raw(), context({ ref: 'refs/tags/v1' })).buildOnPush).toBe(false)
    expect(parseInputs(raw({ 'repo-ref': 'refs/tags/v1' }), context()).buildOnPush).toBe(false)
    expect(parseInputs(raw({ 'repo-ref': 'main' }), context()).buildOnPush).toBeUndefined()
  })

  it('knows the commit only of the ref and the repository of the event', () => {
    const commit = (changes: Partial<RawInputs>) => {
      const { source } = parseInputs(raw(changes), context())
      return source.kind === 'git_host' ? source.commit : undefined
    }
    expect(commit({ 'repo-ref': 'main' })).toBe('a'.repeat(40))
    expect(commit({ 'repo-url': 'https://github.com/acme/agents.git' })).toBe('a'.repeat(40))
    expect(commit({ 'repo-ref': 'other' })).toBeUndefined()
    expect(commit({ tag: 'main' })).toBeUndefined()
    expect(commit({ 'repo-url': 'https://github.com/acme/elsewhere' })).toBeUndefined()
  })

  it('knows the commit of the event by the name of its ref, whatever the address of the repository', () => {
    const mirror = parseInputs(raw({ 'repo-url': 'git@mirror.example.com:acme/agents' }), context()).source
    expect(mirror).toMatchObject({ eventCommit: 'a'.repeat(40) })
    expect(mirror).not.toHaveProperty('commit')
    expect(parseInputs(raw({ 'repo-ref': 'other' }), context()).source).not.toHaveProperty('eventCommit')
  })

  it('updates by id without a name', () => {
    expect(parseInputs(raw({ 'deployment-name': '', 'deployment-id': DEPLOYMENT_ID }), context()).target).toEqual({
      id: DEPLOYMENT_ID,
    })
  })

  it('names every bad input, its value, what is accepted and the fix, in one failure', () => {
    const { code, message, next } = failure({ timeout: '10', 'deployment-name': 'My Agent', wait: 'yes', region: 'mars' })
    expect(code).toBe('E_INPUT')
    expect(message).toContain("- deployment-name 'My Agent' is not a name of a deployment; accepted: lower-case letters")
    expect(message).toContain('fix: write my-agent.')
    expect(message).toContain("- wait 'yes' is not a boolean; accepted: true or false; fix: write true.")
    expect(message).toContain("- timeout '10' has no unit")
    expect(message).toContain("- region 'mars' is not one of them; accepted: us, eu, apac, aws.")
    expect(next).toBe('Correct `region`, `deployment-name`, `wait` and `timeout` in the workflow file.')
  })

  it('never shows a secret value', () => {
    const text = failure({
      'api-key': 'hunter2 hunter2',
      secrets: 'hunter2-text',
      'control-plane-url': 'https://user:hunter2@corp.example.com',
      'repo-url': 'https://hunter2@github.com/acme/agents',
      'source-config': 'listener_id: hunter2',
    }).message
    expect(text).not.toContain('hunter2')
    expect(text.split('\n')).toHaveLength(6)
  })

  it.each<[Partial<RawInputs>, InputName, string]>([
    [{ 'api-key': '' }, 'api-key', 'required'],
    [{ 'deployment-name': '' }, 'deployment-name', 'deployment-id'],
    [{ 'deployment-id': DEPLOYMENT_ID }, 'deployment-id', 'deployment-name'],
    [{ tag: 'v1', 'repo-ref': 'main' }, 'tag', 'repo-ref'],
    [{ tag: 'v1', 'build-on-push': 'true' }, 'build-on-push', 'when a tag is used, build_on_push must be false'],
    [{ 'repo-ref': 'refs/tags/v1', 'build-on-push': 'true' }, 'build-on-push', 'refs/tags/v1'],
    [{ 'image-uri': DIGEST, 'repo-url': 'https://github.com/acme/agents' }, 'repo-url', 'image-uri'],
    [{ 'image-uri': DIGEST, 'config-path': 'a.json' }, 'config-path', 'image-uri'],
    [{ 'image-uri': DIGEST, tag: 'v1' }, 'tag', 'image-uri'],
    [{ mode: 'explode' }, 'mode', 'deploy'],
  ])('refuses %j', (changes, input, says) => {
    const { message } = failure(changes)
    expect(message).toContain(input)
    expect(message).toContain(says)
  })

  it('asks for a ref that the event does not have', () => {
    expect(failure({}, context({ eventName: 'issue_comment', ref: '' })).message).toMatch(/repo-ref .*set repo-ref or tag/)
    expect(failure({}, context({ repository: '' })).message).toContain('set repo-url')
  })

  it('refuses to deploy a fork that nobody named', () => {
    const payload = { pull_request: { head: { ref: 'x', sha: 'b'.repeat(40), repo: { full_name: 'mallory/agents' } } } }
    const fork = context({ eventName: 'pull_request', payload })
    expect(failure({}, fork).message).toContain('fork')
    const named = parseInputs(raw({ 'repo-url': 'https://github.com/mallory/agents' }), fork)
    expect(named.source).toMatchObject({ repoRef: 'x', commit: 'b'.repeat(40) })
  })
})
