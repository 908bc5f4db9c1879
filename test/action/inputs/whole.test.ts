import { describe, expect, it } from 'vitest'
import { parseInputs, type RawInputs } from '../../../src/action/inputs.ts'
import { DEPLOYMENT_ID, DIGEST } from '../support/answers.ts'
import { githubContext } from '../support/github.ts'
import { EMPTY_INPUTS } from '../support/inputs.ts'

const read = (changes: Partial<RawInputs>) => parseInputs({ ...EMPTY_INPUTS, 'api-key': 'key', ...changes }, githubContext())

describe('the inputs of a deploy', () => {
  it('are all taken over', () => {
    const all = {
      'workspace-id': DEPLOYMENT_ID,
      'control-plane-url': 'http://platform.example.com',
      dialect: 'spec',
      'deployment-id': DEPLOYMENT_ID,
      'repo-url': 'https://github.com/acme/other',
      'repo-ref': 'next',
      'config-path': 'a/b.json',
      'integration-id': DEPLOYMENT_ID,
      'deployment-type': 'dev',
      'build-on-push': 'true',
      'source-config': 'install_command: npm ci',
      secrets: 'A=1',
      'skip-unchanged': 'true',
      'dry-run': 'true',
      wait: 'false',
      timeout: '5m',
      'on-timeout': 'interrupt',
      'on-cancel': 'interrupt',
      'smoke-test-input': '{}',
      environment: 'staging',
      comment: 'false',
      summary: 'false',
      'github-token': 'token',
    }
    expect(read(all)).toStrictEqual({
      apiKey: 'key',
      workspaceId: DEPLOYMENT_ID,
      controlPlaneUrl: 'http://platform.example.com',
      dialect: 'spec',
      dryRun: true,
      onTimeout: 'interrupt',
      onCancel: 'interrupt',
      summary: false,
      environment: 'staging',
      comment: false,
      githubToken: 'token',
      warnings: [
        'control-plane-url is plain http: the API key travels unencrypted to platform.example.com',
        'The smoke test is skipped: with wait: false nothing is known to serve when the step ends.',
      ],
      target: { id: DEPLOYMENT_ID },
      source: { kind: 'git_host', repoUrl: 'https://github.com/acme/other', repoRef: 'next', configPath: 'a/b.json' },
      integrationId: DEPLOYMENT_ID,
      deploymentType: 'dev',
      buildOnPush: true,
      secrets: [{ name: 'A', value: '1' }],
      sourceConfig: { install_command: 'npm ci' },
      skipUnchanged: true,
      rollbackOnFailure: false,
      wait: false,
      timeoutMs: 300_000,
      smokeTest: { input: {}, streamMode: 'updates', timeoutMs: 120_000 },
    })
  })

  it('have defaults of their own', () => {
    expect(
      read({ 'deployment-name': 'agent', 'image-uri': DIGEST, 'rollback-on-failure': 'true', 'smoke-test-input': '{}' }),
    ).toStrictEqual({
      apiKey: 'key',
      controlPlaneUrl: 'https://api.host.langchain.com',
      dialect: 'vendor',
      dryRun: false,
      onTimeout: 'leave',
      onCancel: 'leave',
      summary: true,
      warnings: [],
      target: { name: 'agent' },
      source: { kind: 'external_docker', imageUri: DIGEST },
      sourceConfig: {},
      skipUnchanged: false,
      rollbackOnFailure: true,
      wait: true,
      timeoutMs: 1_800_000,
      smokeTest: { input: {}, configPath: 'langgraph.json', streamMode: 'updates', timeoutMs: 120_000 },
    })
  })

  it.each<[Partial<RawInputs>, string]>([
    [
      { 'deployment-name': 'agent', 'repo-url': 'a b' },
      "repo-url 'a b' contains white space; accepted: an address like https://github.com/team/agent or " +
        'git@github.com:team/agent.git, without a password or token.',
    ],
    [{}, 'deployment-name and deployment-id are both empty; fix: set one of them.'],
    [{ 'deployment-name': 'agent', 'api-key': '' }, 'api-key is required and empty; fix: set api-key from a secret that exists.'],
  ])('are refused: %j', (changes, message) => {
    expect(() => read(changes)).toThrow(expect.objectContaining({ code: 'E_INPUT', message }))
  })
})
