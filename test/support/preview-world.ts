import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { askAgent } from '../../src/demo/ask-agent.ts'
import { workflowEvent } from './events.ts'
import { startFaultServer, type FaultServer } from './fault-server.ts'
import { createGitRepository, type GitRepository } from './git-repository.ts'
import { type GithubDouble, startGithubDouble } from './github-double.ts'
import { startPlatform, type PlatformProcess } from './platform.ts'
import type { WorkflowEvent } from './runner/job-environment.ts'
import { REPOSITORY_ROOT, runAction, type RunOptions, type RunResult } from './runner.ts'
import { type Ending, flawsOf } from './scene.ts'

export type Action = 'opened' | 'synchronize' | 'closed' | 'reopened' | 'unlabeled'

type Deployment = { id: string; name: string; status: string; latest_revision_id: string; active_revision_id: string | null }
export type LivePreview = { name: string; status: string; revision: string; commit: string }

/** The real platform, a git host that is a folder, GitHub's double that knows the pull requests, and steps that run the bundle. */
export type PreviewWorld = {
  platform: PlatformProcess
  /** The network between the steps and the platform. */
  network: FaultServer
  github: GithubDouble
  /** Opens a pull request from a branch of its own, in the repository or in a fork of it. */
  open: (number: number, options?: { from?: string; installMs?: number }) => Promise<void>
  /** Commits another version to its branch; returns the commit. */
  push: (number: number, options?: { installMs?: number }) => Promise<string>
  close: (number: number) => void
  reopen: (number: number) => void
  /** The event as GitHub sends it now. */
  event: (number: number, action: Action, name?: string) => WorkflowEvent
  /** Runs the step of `mode: preview`; `action` or `options.event` is its event. */
  step: (action: WorkflowEvent, inputs?: Readonly<Record<string, string>>, options?: Partial<RunOptions>) => Promise<RunResult>
  flaws: (result: RunResult, ending: Ending) => Promise<string[]>
  /** Address of a repository of the git host, `owner/name`. */
  forkUrl: (name: string) => string
  /** What is there of these names, what is being deleted included. */
  previews: (nameContains?: string) => Promise<LivePreview[]>
  /** Names of the tracing projects. */
  projects: () => Promise<string[]>
  ask: (result: RunResult) => Promise<string>
  request: (path: string, init?: { method: string; body?: unknown }) => Promise<Response>
  dispose: () => Promise<void>
}

const OWN = 'acme/agents'

export async function startPreviewWorld(): Promise<PreviewWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'previews-'))
  const server = join(folder, 'host')
  const repositories = new Map<string, GitRepository>()
  const [platform, github] = await Promise.all([startPlatform(), startGithubDouble()])
  const network = await startFaultServer(platform.url)
  const results: RunResult[] = []
  let versions = 0

  const repositoryOf = async (name: string): Promise<GitRepository> => {
    const known = repositories.get(name)
    if (known !== undefined) return known
    const made = await createGitRepository({ files: agentFiles('0', 0) })
    await mkdir(join(server, dirname(name)), { recursive: true })
    await symlink(made.path, join(server, name))
    repositories.set(name, made)
    return made
  }
  const pullRequest = (number: number) => {
    const found = github.state.pullRequests.get(number)
    if (found === undefined) throw new Error(`there is no pull request ${number}`)
    return found
  }
  const request: PreviewWorld['request'] = async (path, { method = 'GET', body } = { method: 'GET' }) =>
    await fetch(`${platform.url}${path}`, {
      method,
      headers: { 'x-api-key': platform.apiKey, 'x-tenant-id': platform.workspaceId, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

  const world: PreviewWorld = {
    platform,
    network,
    github,
    request,
    open: async (number, { from = OWN, installMs = 0 } = {}) => {
      const repository = await repositoryOf(from)
      await repository.checkout('main')
      await repository.branch(`preview-${number}`)
      const headSha = await repository.commit(agentFiles(String(++versions), installMs))
      github.addPullRequest({ number, state: 'open', headRef: `preview-${number}`, headSha, headRepository: from })
    },
    push: async (number, { installMs = 0 } = {}) => {
      const pull = pullRequest(number)
      const repository = await repositoryOf(pull.headRepository ?? '')
      await repository.checkout(pull.headRef)
      pull.headSha = await repository.commit(agentFiles(String(++versions), installMs))
      return pull.headSha
    },
    close: (number) => void (pullRequest(number).state = 'closed'),
    reopen: (number) => void (pullRequest(number).state = 'open'),
    event: (number, action, name = 'pull_request') => {
      const pull = pullRequest(number)
      const base = workflowEvent('pull-request')
      const payload = structuredClone(base.payload) as { pull_request: { head: { repo: object } } }
      const repo = pull.headRepository === null ? null : { ...payload.pull_request.head.repo, full_name: pull.headRepository }
      const head = { ...payload.pull_request.head, ref: pull.headRef, sha: pull.headSha, repo }
      const changed = { ...payload, action, number, pull_request: { ...payload.pull_request, number, state: pull.state, head } }
      return { ...base, name, ref: `refs/pull/${number}/merge`, headRef: pull.headRef, payload: changed }
    },
    step: async (event, inputs = {}, options = {}) => {
      const result = await runAction({
        with: {
          mode: 'preview',
          'api-key': platform.apiKey,
          'control-plane-url': network.url,
          'deployment-name': 'fast-agent',
          'source-config': '{"install_command":"sh install.sh"}',
          timeout: '90s',
          ...inputs,
        },
        event,
        post: false,
        timeoutMs: 120_000,
        ...options,
        env: { GITHUB_SERVER_URL: pathToFileURL(server).href, ...github.env, ...options.env },
      })
      results.push(result)
      return result
    },
    forkUrl: (name) => pathToFileURL(join(server, name)).href,
    flaws: (result, ending) => flawsOf(result, ending, [platform.apiKey]),
    previews: async (nameContains = '') => {
      const answer = await request(`/v2/deployments?limit=100&name_contains=${nameContains}`)
      const { resources } = (await answer.json()) as { resources: Deployment[] }
      const revision = async (id: string, revisionId: string) =>
        (await (await request(`/v2/deployments/${id}/revisions/${revisionId}`)).json()) as {
          status: string
          source_revision_config: { repo_commit_sha: string }
        }
      return await Promise.all(
        resources.map(async ({ id, name, status, latest_revision_id: latest }) => {
          const { status: revisionStatus, source_revision_config: source } = await revision(id, latest)
          return { name, status, revision: revisionStatus, commit: source?.repo_commit_sha }
        }),
      )
    },
    projects: async () => {
      const projects = (await (await request('/api/v1/sessions?limit=100')).json()) as { name: string }[]
      return projects.map(({ name }) => name)
    },
    ask: async (result) => {
      const deploymentUrl = result.outputs['deployment-url'] ?? ''
      const { signal } = new AbortController()
      return (await askAgent({ deploymentUrl, apiKey: platform.apiKey, assistant: 'agent', question: 'who?', signal })).text
    },
    dispose: async () => {
      await Promise.all(results.map((result) => result.dispose()))
      await network.stop()
      await platform.dispose()
      await Promise.all([...repositories.values()].map((repository) => repository.dispose()))
      await rm(folder, { recursive: true, force: true })
      await github.stop()
    },
  }
  return world
}

/** An agent that answers with its version, and whose packages are those of this repository: there is nothing to install. */
function agentFiles(version: string, installMs: number): Record<string, string> {
  return {
    'package.json': '{"name":"fast-agent","version":"1.0.0","type":"module"}',
    'langgraph.json': '{"graphs":{"agent":"./agent.mjs:graph"}}',
    'install.sh': `set -e\nsleep ${installMs / 1000}\nln -sfn ${join(REPOSITORY_ROOT, 'node_modules')} node_modules\n`,
    'agent.mjs': `
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
const answer = () => ({ messages: [{ role: 'assistant', content: 'version ${version}' }] })
export const graph = new StateGraph(MessagesAnnotation).addNode('answer', answer)
  .addEdge('__start__', 'answer').addEdge('answer', '__end__').compile()
`,
  }
}
