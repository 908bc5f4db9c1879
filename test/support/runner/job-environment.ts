import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileCommandPaths } from './file-commands.ts'

/** The event that started the workflow, with the fields of the `github` context that follow from it. */
export type WorkflowEvent = {
  name: string
  payload: unknown
  /** `refs/heads/main`, `refs/tags/v1`, `refs/pull/7/merge`; empty where the event has none. */
  ref: string
  sha: string
  headRef?: string
  baseRef?: string
}

export type JobFolders = {
  root: string
  home: string
  runnerTemp: string
  toolCache: string
  workspace: string
  eventPath: string
}

/** The folders of a job under `root`, and the event's payload file. */
export async function createJobFolders(options: { root: string; workspace?: string; event: WorkflowEvent }): Promise<JobFolders> {
  const { root, event } = options
  const folders: JobFolders = {
    root,
    home: join(root, 'home'),
    runnerTemp: join(root, '_temp'),
    toolCache: join(root, '_tool'),
    workspace: options.workspace ?? join(root, 'work', 'agents', 'agents'),
    eventPath: join(root, '_temp', '_github_workflow', 'event.json'),
  }
  await Promise.all([folders.home, folders.toolCache, folders.workspace].map((path) => mkdir(path, { recursive: true })))
  await mkdir(join(folders.runnerTemp, '_github_workflow'), { recursive: true })
  await writeFile(folders.eventPath, JSON.stringify(event.payload, null, 2))
  return folders
}

/** Tokens of every job; the runner knows and hides them. */
export const GITHUB_TOKEN = 'ghs_runnerDoubleJobToken000000000000000'
export const RUNTIME_TOKEN = 'eyJ.runnerDoubleRuntimeToken.sig'

/** The values that `${{ github.… }}` and `${{ runner.… }}` have in action.yml. */
export function jobContexts(options: { event: WorkflowEvent; folders: JobFolders; token: string }) {
  const { event, folders } = options
  const { refName, refType } = describeRef(event.ref)
  return {
    github: {
      token: options.token,
      event_name: event.name,
      ref: event.ref,
      ref_name: refName,
      ref_type: refType,
      sha: event.sha,
      head_ref: event.headRef ?? '',
      base_ref: event.baseRef ?? '',
      repository: 'acme/agents',
      repository_owner: 'acme',
      server_url: 'https://github.com',
      workspace: folders.workspace,
    },
    runner: { temp: folders.runnerTemp, os: 'Linux', arch: 'X64' },
  }
}

type JobParts = { event: WorkflowEvent; folders: JobFolders; files: FileCommandPaths }

/**
 * The environment of a step on a hosted Linux runner. Nothing is inherited from this process but PATH. `GITHUB_API_URL` points
 * at a closed port of this machine, so that no test ever talks to GitHub; a test that needs the API names a server of its own.
 */
export function jobEnvironment({ event, folders, files }: JobParts): Record<string, string> {
  const { refName, refType } = describeRef(event.ref)
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: folders.home,
    TMPDIR: folders.runnerTemp,
    LANG: 'C.UTF-8',
    CI: 'true',
    GITHUB_ACTIONS: 'true',
    GITHUB_ACTION: '__self',
    GITHUB_ACTION_REF: '',
    GITHUB_ACTION_REPOSITORY: '',
    GITHUB_ACTOR: 'octocat',
    GITHUB_ACTOR_ID: '583231',
    GITHUB_API_URL: 'http://127.0.0.1:9',
    GITHUB_BASE_REF: event.baseRef ?? '',
    GITHUB_ENV: files.env,
    GITHUB_EVENT_NAME: event.name,
    GITHUB_EVENT_PATH: folders.eventPath,
    GITHUB_GRAPHQL_URL: 'http://127.0.0.1:9/graphql',
    GITHUB_HEAD_REF: event.headRef ?? '',
    GITHUB_JOB: 'deploy',
    GITHUB_OUTPUT: files.output,
    GITHUB_PATH: files.path,
    GITHUB_REF: event.ref,
    GITHUB_REF_NAME: refName,
    GITHUB_REF_PROTECTED: 'false',
    GITHUB_REF_TYPE: refType,
    GITHUB_REPOSITORY: 'acme/agents',
    GITHUB_REPOSITORY_ID: '1296269',
    GITHUB_REPOSITORY_OWNER: 'acme',
    GITHUB_REPOSITORY_OWNER_ID: '9919',
    GITHUB_RETENTION_DAYS: '90',
    GITHUB_RUN_ATTEMPT: '1',
    GITHUB_RUN_ID: '30433642',
    GITHUB_RUN_NUMBER: '562',
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_SHA: event.sha,
    GITHUB_STATE: files.state,
    GITHUB_STEP_SUMMARY: files.summary,
    GITHUB_TRIGGERING_ACTOR: 'octocat',
    GITHUB_WORKFLOW: 'Deploy',
    GITHUB_WORKFLOW_REF: `acme/agents/.github/workflows/deploy.yml@${event.ref}`,
    GITHUB_WORKFLOW_SHA: event.sha,
    GITHUB_WORKSPACE: folders.workspace,
    RUNNER_ARCH: 'X64',
    RUNNER_ENVIRONMENT: 'github-hosted',
    RUNNER_NAME: 'runner double',
    RUNNER_OS: 'Linux',
    RUNNER_TEMP: folders.runnerTemp,
    RUNNER_TOOL_CACHE: folders.toolCache,
    RUNNER_WORKSPACE: join(folders.root, 'work', 'agents'),
    ACTIONS_RUNTIME_URL: 'http://127.0.0.1:9/',
    ACTIONS_RUNTIME_TOKEN: RUNTIME_TOKEN,
    ACTIONS_RESULTS_URL: 'http://127.0.0.1:9/',
  }
}

function describeRef(ref: string): { refName: string; refType: string } {
  const match = /^refs\/(heads|tags|pull)\/(.+)$/.exec(ref)
  return { refName: match?.[2] ?? ref, refType: match?.[1] === 'tags' ? 'tag' : ref === '' ? '' : 'branch' }
}
