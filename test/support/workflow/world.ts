import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { askAgent } from '../../../src/demo/ask-agent.ts'
import { ACCESS_KEY, type BucketServer, startBucketServer } from '../../platform/bulk-export/support/bucket-server.ts'
import { type EventName, workflowEvent } from '../events.ts'
import { createGitRepository } from '../git-repository.ts'
import { type GithubDouble, startGithubDouble } from '../github-double.ts'
import { type PlatformProcess, startPlatform } from '../platform.ts'
import type { WorkflowEvent } from '../runner/job-environment.ts'
import { REPOSITORY_ROOT, type RunResult } from '../runner.ts'
import { runWorkflow, type WorkflowOptions, type WorkflowRun } from './workflow-run.ts'

export type PullRequestAction = 'opened' | 'synchronize' | 'closed' | 'reopened'

/** The repository `acme/agents`: git, GitHub, an agent on `main`; and what its workflows deploy to. */
export type WorkflowWorld = {
  platform: PlatformProcess
  bucket: BucketServer
  github: GithubDouble
  /** Of the repository. */
  secrets: Readonly<Record<string, string>>
  vars: Readonly<Record<string, string>>
  /** Runs a workflow of `examples/workflows`; null when the event does not start it. */
  run: (file: string, event: WorkflowEvent, options?: Partial<WorkflowOptions>) => Promise<WorkflowRun | null>
  /** Commits another version of the agent to `main`, or to the branch of a pull request. */
  commit: (version: string, pullRequest?: number) => Promise<string>
  tag: (name: string) => Promise<void>
  open: (number: number, version: string, from?: string) => Promise<void>
  close: (number: number) => void
  pushEvent: () => Promise<WorkflowEvent>
  releaseEvent: (tag: string) => Promise<WorkflowEvent>
  pullRequestEvent: (number: number, action: PullRequestAction, name?: string) => WorkflowEvent
  ask: (result: RunResult | null | undefined) => Promise<string>
  /** What the platform answers. */
  read: <T>(path: string, body?: unknown) => Promise<T>
  dispose: () => Promise<void>
}

const SECRETS = {
  MODEL_API_KEY: 'sk-model-of-the-agent',
  STAGING_MODEL_API_KEY: 'sk-model-of-staging',
  PRODUCTION_MODEL_API_KEY: 'sk-model-of-production',
  TRACES_ACCESS_KEY_ID: ACCESS_KEY.access_key_id,
  TRACES_SECRET_ACCESS_KEY: ACCESS_KEY.secret_access_key,
}

/** `vars`: of the repository; the platform's own are added. */
export async function startWorkflowWorld(options: { vars: Readonly<Record<string, string>> }): Promise<WorkflowWorld> {
  const host = await mkdtemp(join(tmpdir(), 'workflow-world-'))
  const repository = await createGitRepository({ files: agentFiles('1') })
  await mkdir(join(host, 'acme'))
  await symlink(repository.path, join(host, 'acme', 'agents'))
  const bucket = await startBucketServer()
  const env = { AWS_ENDPOINT_URL_S3: bucket.url }
  const [platform, github] = await Promise.all([
    startPlatform({ args: ['--time-scale', '1000'], env, readyMs: 90_000 }),
    startGithubDouble(),
  ])
  const runs: WorkflowRun[] = []
  const tags = new Map<string, string>()

  const eventOf = (kind: EventName, changes: Partial<WorkflowEvent>, payload: object): WorkflowEvent => {
    const event = workflowEvent(kind)
    return { ...event, ...changes, payload: { ...(event.payload as object), ...payload } }
  }
  const pullRequest = (number: number) => {
    const found = github.state.pullRequests.get(number)
    if (found === undefined) throw new Error(`there is no pull request ${number}`)
    return found
  }
  const world: WorkflowWorld = {
    platform,
    bucket,
    github,
    secrets: { AGENT_KEY: platform.apiKey, ...SECRETS },
    vars: { AGENT_WORKSPACE_ID: platform.workspaceId, ...options.vars },
    run: async (file, event, more = {}) => {
      const run = await runWorkflow({
        path: join(REPOSITORY_ROOT, 'examples', 'workflows', file),
        event,
        github,
        secrets: world.secrets,
        vars: world.vars,
        machine: { GITHUB_SERVER_URL: pathToFileURL(host).href },
        // The one thing that is changed: the examples name no address, which is the hosted service.
        inputs: (inputs) => ({ ...inputs, [inputs['mode'] === 'export' ? 'api-url' : 'control-plane-url']: platform.url }),
        ...more,
      })
      if (run !== null) runs.push(run)
      return run
    },
    commit: async (version, number) => {
      const pull = number === undefined ? undefined : pullRequest(number)
      await repository.checkout(pull?.headRef ?? 'main')
      const sha = await repository.commit(agentFiles(version))
      await repository.checkout('main')
      if (pull === undefined) github.state.branches.set('main', sha)
      else pull.headSha = sha
      return sha
    },
    tag: async (name) => {
      await repository.tag(name)
      tags.set(name, await repository.head())
      github.addTag(name, await repository.head(), { annotated: true })
    },
    open: async (number, version, from = 'acme/agents') => {
      const headRef = `change-${number}`
      await repository.branch(headRef)
      github.addPullRequest({ number, state: 'open', headRef, headSha: await repository.head(), headRepository: from })
      await world.commit(version, number)
    },
    close: (number) => void (pullRequest(number).state = 'closed'),
    pushEvent: async () => {
      const sha = await repository.head()
      return eventOf('push', { ref: 'refs/heads/main', sha }, { ref: 'refs/heads/main', after: sha, head_commit: { id: sha } })
    },
    releaseEvent: async (tag) => {
      const { release } = workflowEvent('release').payload as { release: object }
      return eventOf('release', { ref: `refs/tags/${tag}`, sha: tags.get(tag) ?? '' }, { release: { ...release, tag_name: tag } })
    },
    pullRequestEvent: (number, action, name = 'pull_request') => {
      const pull = pullRequest(number)
      const { pull_request: usual } = workflowEvent('pull-request').payload as { pull_request: { head: { repo: object } } }
      const repo = { ...usual.head.repo, full_name: pull.headRepository }
      const head = { ...usual.head, ref: pull.headRef, sha: pull.headSha, repo }
      const changes = { name, ref: `refs/pull/${number}/merge`, headRef: pull.headRef }
      return eventOf('pull-request', changes, { action, number, pull_request: { ...usual, number, state: pull.state, head } })
    },
    ask: async (result) => {
      const deploymentUrl = result?.outputs['deployment-url'] ?? ''
      const { signal } = new AbortController()
      return (await askAgent({ deploymentUrl, apiKey: platform.apiKey, assistant: 'agent', question: 'who?', signal })).text
    },
    read: async <T>(path: string, body?: unknown) => {
      const answer = await fetch(`${platform.url}${path}`, {
        headers: { 'x-api-key': platform.apiKey, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      })
      if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`)
      return (await answer.json()) as T
    },
    dispose: async () => {
      await Promise.all(runs.map((run) => run.dispose()))
      await platform.dispose()
      await bucket.stop()
      await Promise.all([repository.dispose(), rm(host, { recursive: true, force: true })])
      await github.stop()
    },
  }
  return world
}

/** The event of a cron line. */
export function scheduleEvent(cron: string): WorkflowEvent {
  return { ...workflowEvent('workflow-dispatch'), name: 'schedule', payload: { schedule: cron } }
}

export function dispatchEvent(inputs: Readonly<Record<string, string | boolean>> = {}): WorkflowEvent {
  const event = workflowEvent('workflow-dispatch')
  return { ...event, payload: { ...(event.payload as object), inputs } }
}

/** An agent that answers with its version, and whose packages are those of this repository: there is nothing to download. */
function agentFiles(version: string): Record<string, string> {
  const manifest = { name: 'fast-agent', version: '1.0.0', type: 'module' }
  const install = `rm -rf node_modules && ln -s ${join(REPOSITORY_ROOT, 'node_modules')} node_modules`
  return {
    'package.json': JSON.stringify({ ...manifest, scripts: { postinstall: install } }),
    'package-lock.json': JSON.stringify({ ...manifest, lockfileVersion: 3, requires: true, packages: { '': manifest } }),
    'langgraph.json': '{"graphs":{"agent":"./agent.mjs:graph"}}',
    'agent.mjs': `
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
const answer = () => ({ messages: [{ role: 'assistant', content: 'version ${version}' }] })
export const graph = new StateGraph(MessagesAnnotation).addNode('answer', answer)
  .addEdge('__start__', 'answer').addEdge('answer', '__end__').compile()
`,
  }
}
