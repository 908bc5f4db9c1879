import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askAgent } from '../../src/demo/ask-agent.ts'
import { serveGit } from '../platform/lifecycle-support/git-server.ts'
import { linkedPackages } from './echo-packages.ts'
import { workflowEvent } from './events.ts'
import { createGitRepository, type GitRepository } from './git-repository.ts'
import { startGithubDouble, type GithubDouble } from './github-double.ts'
import { startPlatform, type PlatformProcess } from './platform.ts'
import type { WorkflowEvent } from './runner/job-environment.ts'
import { REPOSITORY_ROOT, runAction, type RunOptions, type RunResult } from './runner.ts'
import { type Ending, flawsOf } from './scene.ts'

/** The real platform, a git repository with the echo agent, GitHub's double that knows its tags, and steps that run the bundle. */
export type ReleaseWorld = {
  platform: PlatformProcess
  repository: GitRepository
  github: GithubDouble
  /** Runs a step, for a push to `main` unless told otherwise. */
  step: (inputs: Readonly<Record<string, string>>, options?: Partial<RunOptions>) => Promise<RunResult>
  flaws: (result: RunResult, ending: Ending, secrets?: readonly string[]) => Promise<string[]>
  /** Commits another version of the agent. */
  version: (version: string) => Promise<string>
  /** Tags the newest commit, for git and for GitHub. */
  tag: (name: string) => Promise<void>
  pushEvent: () => Promise<WorkflowEvent>
  /** GitHub's own events about a tag, with its commit. */
  releaseEvent: (tag: string) => Promise<WorkflowEvent>
  tagEvent: (tag: string) => Promise<WorkflowEvent>
  ask: (result: RunResult) => Promise<string>
  /** What the control plane answers. */
  read: <T>(path: string) => Promise<T>
  dispose: () => Promise<void>
}

export async function startReleaseWorld(): Promise<ReleaseWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'release-'))
  const echo = join(REPOSITORY_ROOT, 'examples', 'echo-agent')
  const repository = await createGitRepository({ from: echo, files: await linkedPackages() })
  // GITHUB_SERVER_URL/GITHUB_REPOSITORY is the address of the repository.
  await mkdir(join(folder, 'acme'))
  await symlink(repository.path, join(folder, 'acme', 'agents'))
  const server = await serveGit({ root: folder })
  const [platform, github] = await Promise.all([startPlatform(), startGithubDouble()])
  const results: RunResult[] = []
  const tags = new Map<string, string>()

  const eventOf = async (kind: 'push' | 'release' | 'push-tag', changes: (sha: string) => object): Promise<WorkflowEvent> => {
    const event = workflowEvent(kind)
    const sha = await repository.head()
    return { ...event, ref: 'refs/heads/main', sha, payload: { ...(event.payload as object), ...changes(sha) } }
  }
  const commitOf = (tag: string): string => tags.get(tag) ?? ''
  const world: ReleaseWorld = {
    platform,
    repository,
    github,
    step: async (inputs, options = {}) => {
      const result = await runAction({
        with: { 'api-key': platform.apiKey, 'control-plane-url': platform.url, timeout: '120s', comment: 'false', ...inputs },
        event: options.event ?? (await world.pushEvent()),
        cwd: repository.path,
        timeoutMs: 200_000,
        ...options,
        env: { GITHUB_SERVER_URL: server.url, ...github.env, ...options.env },
      })
      results.push(result)
      return result
    },
    flaws: (result, ending, secrets = []) => flawsOf(result, ending, [platform.apiKey, ...secrets]),
    version: async (version) => {
      const agent = await readFile(join(echo, 'agent.mjs'), 'utf8')
      const sha = await repository.commit({ 'agent.mjs': agent.replace("VERSION = '1'", `VERSION = '${version}'`) })
      github.state.branches.set('main', sha)
      return sha
    },
    tag: async (name) => {
      await repository.tag(name)
      const sha = await repository.head()
      tags.set(name, sha)
      github.addTag(name, sha, { annotated: true })
    },
    pushEvent: () => eventOf('push', (sha) => ({ ref: 'refs/heads/main', after: sha, head_commit: { id: sha } })),
    releaseEvent: async (tag) => {
      const event = await eventOf('release', () => ({}))
      const payload = event.payload as { release: object }
      return {
        ...event,
        ref: `refs/tags/${tag}`,
        sha: commitOf(tag),
        payload: { ...payload, release: { ...payload.release, tag_name: tag } },
      }
    },
    tagEvent: async (tag) => {
      const event = await eventOf('push-tag', () => ({ ref: `refs/tags/${tag}`, head_commit: { id: commitOf(tag) } }))
      return { ...event, ref: `refs/tags/${tag}`, sha: commitOf(tag) }
    },
    ask: async (result) => {
      const deploymentUrl = result.outputs['deployment-url'] ?? ''
      const { signal } = new AbortController()
      return (await askAgent({ deploymentUrl, apiKey: platform.apiKey, assistant: 'agent', question: 'who?', signal })).text
    },
    read: async <T>(path: string) => {
      const answer = await fetch(`${platform.url}${path}`, { headers: { 'x-api-key': platform.apiKey } })
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
      return (await answer.json()) as T
    },
    dispose: async () => {
      await Promise.all(results.map((result) => result.dispose()))
      await platform.dispose()
      await server.close()
      await Promise.all([repository.dispose(), rm(folder, { recursive: true, force: true })])
      await github.stop()
    },
  }
  return world
}
