import { readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askAgent } from '../../src/demo/ask-agent.ts'
import { createGitRepository, type GitRepository } from '../support/git-repository.ts'
import { startPlatform, type PlatformProcess } from '../support/platform.ts'
import { readable } from '../support/readable.ts'
import { REPOSITORY_ROOT, runAction, type RunOptions, type RunResult } from '../support/runner.ts'
import { DEPLOYED, failed, flawsOf } from '../support/scene.ts'

const SECRET = 'sk-secret-of-the-echo-agent'
let platform: PlatformProcess
let repository: GitRepository
const results: RunResult[] = []

beforeAll(async () => {
  repository = await createGitRepository({ from: join(REPOSITORY_ROOT, 'examples', 'echo-agent') })
  platform = await startPlatform()
})
afterAll(async () => {
  await Promise.all(results.map((result) => result.dispose()))
  await platform?.dispose()
  await repository?.dispose()
})

/** One step against the real platform, for a push of what is in the repository now. */
async function deploy(inputs: Readonly<Record<string, string>> = {}, options: Partial<RunOptions> = {}): Promise<RunResult> {
  const sha = await repository.head()
  const payload = { ref: 'refs/heads/main', after: sha, head_commit: { id: sha } }
  const result = await runAction({
    with: {
      'api-key': platform.apiKey,
      'control-plane-url': platform.url,
      'deployment-name': 'echo-agent',
      secrets: `ECHO_KEY=${SECRET}`,
      timeout: '60s',
      ...inputs,
    },
    event: { name: 'push', ref: 'refs/heads/main', sha, payload },
    // The repository that runs the workflow is the one on this machine.
    env: { GITHUB_SERVER_URL: dirname(repository.url), GITHUB_REPOSITORY: basename(repository.url) },
    timeoutMs: 90_000,
    ...options,
  })
  results.push(result)
  return result
}

const secrets = () => [platform.apiKey, SECRET]

async function ask(result: RunResult): Promise<string> {
  const deploymentUrl = result.outputs['deployment-url'] ?? ''
  const signal = new AbortController().signal
  return (await askAgent({ deploymentUrl, apiKey: platform.apiKey, assistant: 'agent', question: 'who?', signal })).text
}

/** The status of the newest revision. */
async function latestStatus(): Promise<string | undefined> {
  const get = async (path: string): Promise<unknown> =>
    (await fetch(platform.url + path, { headers: { 'x-api-key': platform.apiKey } })).json()
  const { resources: found } = (await get('/v2/deployments?name_contains=echo-agent')) as { resources: { id: string }[] }
  const path = `/v2/deployments/${found[0]?.id}/revisions?limit=1`
  const { resources: newest } = (await get(path)) as { resources: { status: string }[] }
  return newest[0]?.status
}

async function changeAgent(from: string, to: string): Promise<string> {
  const agent = await readFile(join(repository.path, 'agent.mjs'), 'utf8')
  expect(agent).toContain(from)
  return repository.commit({ 'agent.mjs': agent.replace(from, to) })
}

describe('the bundle and the platform', { timeout: 120_000 }, () => {
  it('deploy a branch, and the agent answers', async () => {
    const result = await deploy()
    expect(await flawsOf(result, DEPLOYED, secrets())).toEqual([])
    const sha = await repository.head()
    expect(result.outputs).toMatchObject({ created: 'true', 'revision-status': 'DEPLOYED', 'commit-sha': sha })
    expect(await ask(result)).toBe('echo 1: who?')
  })

  it('make no revision of a commit that serves', async () => {
    const result = await deploy({ 'skip-unchanged': 'true', secrets: '' })
    expect(await flawsOf(result, { status: 'unchanged' }, secrets())).toEqual([])
  })

  it('deploy a tag in place of the branch', async () => {
    const sha = await changeAgent("VERSION = '1'", "VERSION = '2'")
    await repository.tag('v2.0.0')
    const result = await deploy({ tag: 'v2.0.0' })
    expect(await flawsOf(result, DEPLOYED, secrets())).toEqual([])
    expect(result.outputs).toMatchObject({ created: 'false', 'commit-sha': sha })
    expect(result.outputs['previous-revision-id']).not.toBe(result.outputs['revision-id'])
    expect(await ask(result)).toBe('echo 2: who?')
  })

  it('end red with the log of an agent that does not start, while the one before goes on serving', async () => {
    await changeAgent('import {', "import './prompts.mjs'\nimport {")
    const result = await deploy()
    expect(await flawsOf(result, failed('E_DEPLOY_FAILED', 'DEPLOY_FAILED', 'prompts.mjs'), secrets())).toEqual([])
    expect(readable(result.summary)).toContain('prompts.mjs')
    expect(result.groups.flatMap(({ lines }) => lines).join('\n')).toContain('prompts.mjs')
    expect(await ask(result)).toBe('echo 2: who?')
  })

  it('end red with the log of a build that cannot be made', async () => {
    const result = await deploy({ 'repo-ref': 'no-such-branch' })
    expect(await flawsOf(result, failed('E_BUILD_FAILED', 'no-such-branch'), secrets())).toEqual([])
  })

  it.each([
    ['another key', { 'api-key': 'lsv2_pt_ffffffffffffffffffffffffffffffff_ffffffffff' }, 'E_AUTH'],
    ['another workspace', { 'workspace-id': '11111111-1111-4111-8111-111111111111' }, 'E_AUTH'],
    ['an unknown deployment', { 'deployment-name': '', 'deployment-id': '11111111-1111-4111-8111-111111111111' }, 'E_NOT_FOUND'],
    ['another repository', { 'repo-url': 'https://github.com/acme/other' }, 'E_CONFLICT'],
  ])('refuse %s', async (_, inputs: Record<string, string>, code) => {
    const result = await deploy(inputs)
    expect(await flawsOf(result, failed(code), [...secrets(), inputs['api-key'] ?? SECRET])).toEqual([])
  })

  it('tell the truth when the platform is killed while the step waits, and comes back', async () => {
    await changeAgent("import './prompts.mjs'\n", '')
    // The agent does not come up before it is let: the platform is killed while it is being started, however slow the machine is.
    const gate = join(platform.dataDirectory, 'gate')
    const waits = `import { existsSync } from 'node:fs'
while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 50))
`
    const sha = await changeAgent("VERSION = '2'", "VERSION = '3'").then(() => changeAgent('import {', `${waits}import {`))
    const pending = deploy()
    await expect.poll(latestStatus, { timeout: 60_000 }).toBe('DEPLOYING')
    await platform.kill9()
    await delay(1000)
    await platform.restart()
    await writeFile(gate, '')
    const result = await pending
    expect(await flawsOf(result, DEPLOYED, secrets())).toEqual([])
    expect(result.outputs['commit-sha']).toBe(sha)
    expect(await ask(result)).toBe('echo 3: who?')
  })
})
