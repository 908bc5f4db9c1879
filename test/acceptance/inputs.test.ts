import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { startControlPlaneDouble } from '../support/control-plane-double.ts'
import type { ControlPlaneDouble } from '../support/control-plane-model.ts'
import { workflowEvent } from '../support/events.ts'
import { REPOSITORY_ROOT, runAction, type RunOptions, type RunResult } from '../support/runner.ts'
import { failed, flawsOf } from '../support/scene.ts'

let plane: ControlPlaneDouble
const results: RunResult[] = []

beforeAll(async () => {
  plane = await startControlPlaneDouble()
})
afterAll(() => Promise.all([plane.stop(), ...results.map((result) => result.dispose())]))

let runs = 0

/** One run of the bundle with inputs that would deploy, but for those of `wrong`, and the requests that it made. */
async function runWith(wrong: Readonly<Record<string, string>>, options: Partial<RunOptions> = {}) {
  // A path of its own tells this run's requests from those of its neighbours.
  const path = `/run-${runs++}`
  const fine = { 'api-key': plane.apiKey, 'control-plane-url': plane.url + path, 'deployment-name': 'echo-agent', timeout: '5s' }
  const result = await runAction({ with: { ...fine, ...wrong }, post: false, ...options })
  results.push(result)
  return { result, requests: plane.requests.filter((request) => request.path.startsWith(`${path}/`)) }
}

type Row = readonly [
  input: string,
  value: string,
  /** What the message has to say besides the name of the input. */
  says: string | RegExp,
  /** Other inputs of the step. */
  others?: Readonly<Record<string, string>>,
]

const NAME_RULE = /lower-case letters, digits and hyphens/
const BOOLEAN = 'true or false'
const UUID = /UUID/
const OTHER_ID = { 'deployment-id': '1b4e28ba-2fa1-4d2b-883f-0016d3cca427' }
const IMAGE = { 'image-uri': 'registry.example.com/team/agent:1.2.3' }

/** An export that could begin, but for its input under test. */
const EXPORT = {
  mode: 'export',
  'workspace-id': '5f0f4c1e-7a57-4ad1-9a39-3d8f3a1d2b10',
  'api-url': 'http://127.0.0.1:9',
  'export-project-id': '1b4e28ba-2fa1-4d2b-883f-0016d3cca427',
  'export-destination-id': '1b4e28ba-2fa1-4d2b-883f-0016d3cca428',
  'export-start': '-24h',
  'export-end': 'now',
}
const TO_BUCKET = { ...EXPORT, 'export-destination-id': '', 'export-bucket': 'traces', 'export-bucket-region': 'eu-central-1' }

const PROMOTION = { mode: 'promote', tag: 'v1.2.3' }

const ROWS: readonly Row[] = [
  ['api-key', '', 'required'],
  ['api-key', '   ', 'required'],
  ['api-key', 'two words', 'header'],
  ['api-key', 'two\nlines', 'header'],
  ['api-key', 'schlüssel', 'header'],
  ['workspace-id', 'my-workspace', UUID],
  ['workspace-id', '1b4e28ba-2fa1-4d2b-883f-0016d3cca427x', UUID],
  ['region', 'mars', /us, eu, apac/],
  ['region', 'US', /write us/],
  ['control-plane-url', 'not an address', 'https'],
  ['control-plane-url', 'langsmith.example.com/api-host', 'write https://langsmith.example.com/api-host'],
  ['control-plane-url', 'ftp://langsmith.example.com', 'https'],
  ['control-plane-url', 'https://user:hunter2-password@langsmith.example.com', 'credentials'],
  ['control-plane-url', 'https://langsmith.example.com/?key=hunter2-password', 'query'],
  ['control-plane-url', 'https://langsmith.example.com/#top', 'fragment'],
  ['control-plane-url', 'https://langsmith.example.com/v2/deployments', '/v2/deployments'],
  ['dialect', 'other', /auto, spec, vendor/],
  ['dialect', 'Spec', /write spec/],
  ['mode', 'destroy', 'deploy'],
  ['mode', 'Deploy', 'write deploy'],
  ['mode', 'preview', 'the event push is not one of a pull request'],
  ['mode', 'teardown', 'has no pull request'],
  ['deployment-name', '', 'deployment-id'],
  ['deployment-name', 'Echo Agent', 'write echo-agent'],
  ['deployment-name', 'echo_agent', NAME_RULE],
  ['deployment-name', '-echo', NAME_RULE],
  ['deployment-name', 'echo-', NAME_RULE],
  ['deployment-name', 'e'.repeat(64), NAME_RULE],
  ['deployment-name', 'ünicode', NAME_RULE],
  ['deployment-name', '../../v1', NAME_RULE],
  ['deployment-id', 'echo-agent', UUID, { 'deployment-name': '' }],
  ['deployment-id', '../../other', UUID, { 'deployment-name': '' }],
  ['deployment-id', OTHER_ID['deployment-id'], 'deployment-name'],
  ['deployment-id', OTHER_ID['deployment-id'], 'mode is sweep', { mode: 'sweep' }],
  ['deployment-name', '', 'mode is sweep', { mode: 'sweep' }],
  ['repo-url', 'acme/agents', 'write https://github.com/acme/agents'],
  ['repo-url', 'agents', 'git'],
  ['repo-url', 'https://ghp_hunter2password@github.com/acme/agents', 'credentials'],
  ['repo-url', 'https://octocat:hunter2-password@github.com/acme/agents', 'credentials'],
  ['repo-url', 'octocat:hunter2-password@github.com/acme/agents', /'\*\*\*@github\.com\/acme\/agents' is not the address/],
  ['repo-url', 'https://github.com/acme/my agents', 'white space'],
  ['repo-url', 'javascript:alert(1)', 'git'],
  ['repo-url', '--upload-pack=touch /tmp/x', 'white space'],
  ['repo-url', '--upload-pack=x', 'git'],
  ['repo-ref', 'refs/heads/main', 'write main'],
  ['repo-ref', 'refs/pull/7/merge', 'branch'],
  ['repo-ref', 'my branch', 'branch'],
  ['repo-ref', 'a..b', 'branch'],
  ['repo-ref', '-main', 'branch'],
  ['repo-ref', 'main.lock', 'branch'],
  ['repo-ref', 'main~1', 'branch'],
  ['repo-ref', 'refs/tags/', 'branch'],
  ['repo-ref', 'b'.repeat(256), 'branch'],
  ['tag', 'refs/heads/main', 'repo-ref'],
  ['tag', 'v 1', 'tag'],
  ['tag', 'v1..2', 'tag'],
  ['tag', '-v1', 'tag'],
  ['tag', 'v1.2.3', 'repo-ref', { 'repo-ref': 'main' }],
  ['tag', 'v1.2.3', 'mode is preview', { mode: 'preview' }],
  ['repo-ref', 'main', 'mode is preview', { mode: 'preview' }],
  ['build-on-push', 'true', /tag/, { tag: 'v1.2.3' }],
  ['build-on-push', 'true', /tag/, { 'repo-ref': 'refs/tags/v1.2.3' }],
  ['config-path', '/etc/langgraph.json', 'relative'],
  ['config-path', '../langgraph.json', "without '..'"],
  ['config-path', 'agents/../../langgraph.json', "without '..'"],
  ['config-path', 'langgraph.yaml', 'JSON'],
  ['config-path', 'agents//langgraph.json', 'relative'],
  ['config-path', 'agents\\langgraph.json', 'relative'],
  ['image-uri', 'https://registry.example.com/agent:1', 'write registry.example.com/agent:1'],
  ['image-uri', 'my agent:1', 'image reference'],
  ['image-uri', '-agent', 'image reference'],
  ['image-uri', `registry.example.com/${'a'.repeat(1024)}`, 'image reference'],
  ['repo-url', 'https://github.com/acme/agents', 'image-uri', IMAGE],
  ['repo-ref', 'main', 'image-uri', IMAGE],
  ['tag', 'v1', 'image-uri', IMAGE],
  ['config-path', 'langgraph.json', 'image-uri', IMAGE],
  ['integration-id', '1b4e28ba-2fa1-4d2b-883f-0016d3cca427', 'image-uri', IMAGE],
  ['build-on-push', 'false', 'image-uri', IMAGE],
  ['integration-id', 'github', UUID],
  ['deployment-type', 'very big', 'word'],
  ['deployment-type', 'p'.repeat(65), '64'],
  ['build-on-push', 'yes', 'write true'],
  ['build-on-push', 'TRUE', 'write true'],
  ['build-on-push', '0', 'write false'],
  ['build-on-push', 'maybe', BOOLEAN],
  ['source-config', 'just text', 'object'],
  ['source-config', '[1, 2]', 'object'],
  ['source-config', 'resource_spec: [', 'YAML'],
  ['source-config', '{"unknown_field": "hunter2-password"}', 'unknown_field'],
  ['source-config', 'repo_url: https://github.com/acme/agents', 'input repo-url'],
  ['source-config', 'build_on_push: true', 'input build-on-push'],
  ['source-config', 'resource_spec: { cpu: 1000 }', 'resource_spec.cpu'],
  ['source-config', 'listener_id: hunter2-password', 'listener_id'],
  ['source-config', 'a: &a [x]\nb: *a', 'source-config'],
  ['secrets', 'hunter2-password', 'line 1'],
  ['secrets', '1A=hunter2-password', 'line 1'],
  ['secrets', 'A=fine-value\nB =\n', 'line 2'],
  ['secrets', 'A=', 'A has no value'],
  ['secrets', 'A=hunter2-password\nA=hunter3-password', 'line 2'],
  ['secrets', 'POSTGRES_URI=hunter2-password', 'reserved'],
  ['secrets', 'A<<END\nhunter2-password\n', 'no end'],
  ['secrets', `A=${'x'.repeat(65_537)}`, 'too long'],
  ['skip-unchanged', 'yes', 'write true'],
  ['skip-unchanged', 'sometimes', BOOLEAN],
  ['dry-run', 'True', 'write true'],
  ['dry-run', '{}', BOOLEAN],
  ['wait', 'no', 'write false'],
  ['wait', 'until done', BOOLEAN],
  ['smoke-test-input', 'hunter2', 'is not JSON'],
  ['smoke-test-input', '[{"password": "hunter2"}]', 'is JSON, but an array'],
  ['smoke-test-assistant', 'two\nlines', 'on one line', { 'smoke-test-input': '{}' }],
  ['smoke-test-assistant', 'agent', 'smoke-test-input is empty'],
  ['smoke-test-stream-mode', 'tokens', /accepted: values, updates, messages, messages-tuple/],
  ['smoke-test-expect', '(pong', 'is not a regular expression', { 'smoke-test-input': '{}' }],
  ['smoke-test-expect', 'pong', 'smoke-test-input is empty'],
  ['smoke-test-timeout', '2', 'write 2s'],
  ['rollback-on-failure', 'yes', 'write true'],
  ['rollback-on-failure', 'always', BOOLEAN],
  ['rollback-on-failure', 'true', 'a failure that is not waited for cannot be rolled back', { wait: 'false' }],
  ['promote-from', '', 'is empty, and mode is promote', PROMOTION],
  ['promote-from', 'Echo Staging', 'write echo-staging', PROMOTION],
  ['promote-from', 'echo-agent', 'is the deployment that is to be changed', PROMOTION],
  ['promote-from', 'echo-staging', 'mode is deploy: nothing would be promoted'],
  ['wait', 'false', 'mode is promote', { ...PROMOTION, 'promote-from': 'echo-staging' }],
  ['preview-ttl', '7', 'write 7s'],
  ['preview-ttl', '366d', '365 days'],
  ['preview-ttl', 'never', /12h or 7d/, { mode: 'sweep' }],
  ['api-url', '', 'control-plane-url is set', EXPORT],
  ['api-url', 'ftp://api.example.com', 'https', EXPORT],
  ['api-url', 'https://api.example.com/api/v1', 'leave that out', EXPORT],
  ['workspace-id', '', 'an export needs it', EXPORT],
  ['export-project-id', '', 'an export needs it', EXPORT],
  ['export-project-id', 'my-project', UUID, EXPORT],
  ['export-destination-id', '', 'export-bucket are both empty', EXPORT],
  ['export-destination-id', 'lake', UUID, EXPORT],
  ['export-destination-id', OTHER_ID['deployment-id'], 'export-project-id is empty'],
  ['export-bucket', 'traces', 'export-destination-id are both set', EXPORT],
  ['export-bucket', 's3://traces/lake', 'write traces', TO_BUCKET],
  ['export-bucket', 'a', '3 to 63', TO_BUCKET],
  ['export-prefix', 'lake\u0007', 'control characters', TO_BUCKET],
  ['export-prefix', 'lake', 'export-destination-id are both set', EXPORT],
  ['export-bucket-region', '', 'export-endpoint-url are both empty', TO_BUCKET],
  ['export-bucket-region', 'eu central', 'region', TO_BUCKET],
  ['export-endpoint-url', 's3.example.com', 'write https://s3.example.com', TO_BUCKET],
  ['export-endpoint-url', 'https://user:hunter2-password@s3.example.com', 'credentials', TO_BUCKET],
  ['export-access-key-id', 'hunter2 key', 'printable', TO_BUCKET],
  ['export-access-key-id', 'hunter2-key-id', 'export-secret-access-key is empty', TO_BUCKET],
  ['export-secret-access-key', 'hunter2-secret', 'export-access-key-id is empty', TO_BUCKET],
  ['export-secret-access-key', 'hunter2 secret', 'printable', TO_BUCKET],
  ['export-session-token', 'hunter2-token', 'export-access-key-id is empty', TO_BUCKET],
  ['export-start', '', 'an export needs it', EXPORT],
  ['export-start', 'yesterday', 'ISO 8601', EXPORT],
  ['export-start', '24h', 'write -24h', EXPORT],
  ['export-start', '2026-02-30', 'ISO 8601', EXPORT],
  ['export-end', '', 'one-off export needs it', EXPORT],
  ['export-end', '-24h', 'not later than export-start', EXPORT],
  ['export-end', '2126-01-01', '3660 days', EXPORT],
  ['export-end', 'now', 'export-interval-hours are both set', { ...EXPORT, 'export-interval-hours': '24' }],
  ['export-interval-hours', '169', '1 to 168', { ...EXPORT, 'export-end': '' }],
  ['export-interval-hours', '0', '1 to 168', { ...EXPORT, 'export-end': '' }],
  ['export-interval-hours', '24h', 'write 24', { ...EXPORT, 'export-end': '' }],
  ['export-filter', 'and(eq(is_root, true), eq(nonsense, 1))', /at character 27.*⟨here⟩nonsense/s, EXPORT],
  ['export-filter', 'eq(name, "x"', /at character 13/, EXPORT],
  ['export-filter', 'eq(is_root, true)', 'export-project-id is empty'],
  ['export-fields', 'id, password', 'unknown fields (password)', EXPORT],
  ['export-fields', 'id\nid', 'names id twice', EXPORT],
  ['export-format-version', 'v3', 'v1, v2_beta', EXPORT],
  ['export-wait', 'yes', 'write true', EXPORT],
  ['export-timeout', '72', 'write 72s', EXPORT],
  ['environment', 'two\nlines', 'one line'],
  ['environment', 'e'.repeat(256), '256 characters long'],
  ['comment', 'yes', 'write true'],
  ['comment', 'once', BOOLEAN],
  ['summary', 'off', 'write false'],
  ['summary', 'null', BOOLEAN],
  ['github-token', 'hunter2 token', 'header'],
  ['timeout', '10', 'write 10s for seconds or 10m for minutes'],
  ['timeout', '10 minutes', /1h30m/],
  ['timeout', '-5m', /1h30m/],
  ['timeout', '1m1h', /1h30m/],
  ['timeout', '1.5h', /1h30m/],
  ['timeout', '500ms', /1h30m/],
  ['timeout', '0s', 'shorter'],
  ['timeout', '8d', '7 days'],
  ['timeout', 'forever', /1h30m/],
  ['on-timeout', 'delete', /leave, interrupt/],
  ['on-timeout', 'LEAVE', 'write leave'],
  ['on-cancel', 'kill', /leave, interrupt/],
  ['on-cancel', 'Interrupt', 'write interrupt'],
]

const ODD_TEXTS = [
  '::error::INJECTED', '##[error]INJECTED', '\u001b[31m', '"; rm -rf /', '<script>', '%0A::error::INJECTED', '\n\n', '💥💥',
]
const WITH_A_GRAMMAR = [
  'workspace-id', 'region', 'control-plane-url', 'deployment-name', 'repo-url', 'repo-ref', 'config-path', 'timeout', 'wait',
]

describe.concurrent('one bad input', () => {
  it.for(ROWS)('%s: %j is refused', async ([input, value, says, others]) => {
    const { result, requests } = await runWith({ ...others, [input]: value })
    const secrets = [plane.apiKey, 'hunter2', 'hunter3', 'ghp_hunter2password'].filter((secret) => secret !== value)
    expect(await flawsOf(result, failed('E_INPUT', input, says), secrets)).toEqual([])
    expect(requests).toEqual([])
  })

  it('has a row for every input of action.yml', () => {
    const manifest = parse(readFileSync(join(REPOSITORY_ROOT, 'action.yml'), 'utf8')) as { inputs: Record<string, unknown> }
    const covered = new Set(ROWS.map(([input]) => input))
    expect(Object.keys(manifest.inputs).filter((input) => !covered.has(input))).toEqual([])
  })

  it.each(ODD_TEXTS)('%j in every input that has a grammar carries out no command', async (text) => {
    const inputs = Object.fromEntries(WITH_A_GRAMMAR.map((input) => [input, `X ${text}`]))
    const { result } = await runWith(inputs)
    expect(await flawsOf(result, failed('E_INPUT', 'deployment-name', 'wait'), [plane.apiKey])).toEqual([])
    expect(result.annotations.filter(({ message }) => message.startsWith('INJECTED'))).toEqual([])
  })
})

describe.concurrent('several bad inputs', () => {
  it('are all named in one failure', async () => {
    const { result } = await runWith({ timeout: '10', wait: 'yes', 'deployment-name': 'A B' })
    const says = ['deployment-name', 'write a-b', 'wait', 'write true', 'timeout', 'write 10s']
    expect(await flawsOf(result, failed('E_INPUT', ...says), [plane.apiKey])).toEqual([])
  })
})

describe.concurrent('an event that has no ref to deploy', () => {
  it.each([
    ['a pull request whose payload has no head', { ...workflowEvent('pull-request'), payload: {} }],
    ['a release whose payload has no tag', { ...workflowEvent('release'), payload: { release: {} } }],
    ['an event without a ref', { name: 'issue_comment', ref: '', sha: '', payload: {} }],
    ['a merge group', { name: 'merge_group', ref: 'refs/pull/7/merge', sha: 'a'.repeat(40), payload: {} }],
  ])('%s', async (_, event) => {
    const { result, requests } = await runWith({}, { event })
    expect(await flawsOf(result, failed('E_INPUT', 'repo-ref', 'tag'), [plane.apiKey])).toEqual([])
    expect(requests).toEqual([])
  })

  it('a pull request from a fork, whose code anybody may have written', async () => {
    const event = workflowEvent('pull-request')
    const text = JSON.stringify(event.payload).replace('"full_name":"acme/agents"', '"full_name":"mallory/agents"')
    const { result, requests } = await runWith({}, { event: { ...event, payload: JSON.parse(text) } })
    expect(await flawsOf(result, failed('E_INPUT', 'repo-url', 'fork'), [plane.apiKey])).toEqual([])
    expect(requests).toEqual([])
  })
})
