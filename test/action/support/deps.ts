import { vi } from 'vitest'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import type { Deps } from '../../../src/action/deps.ts'
import type { DeployInputs, Inputs } from '../../../src/action/inputs.ts'
import { createJournal } from '../../../src/action/journal.ts'
import type { Log } from '../../../src/action/report/log.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { deployment, DEPLOYMENT_ID, NEW_REVISION_ID, REPO_URL, revision } from './answers.ts'
import { fakeEffects } from './effects.ts'
import { githubContext } from './github.ts'

/** A control plane on which everything goes well, unless a test says otherwise. */
export function fakeControlPlane(changes: Partial<ControlPlane> = {}): ControlPlane {
  return {
    listDeployments: vi.fn(async () => [deployment()]),
    findDeploymentByName: vi.fn(async () => deployment()),
    getDeployment: vi.fn(async () => deployment({ latest_revision_id: NEW_REVISION_ID, active_revision_id: NEW_REVISION_ID })),
    createDeployment: vi.fn(async () => ({
      deployment: deployment({ latest_revision_id: NEW_REVISION_ID, active_revision_id: null }),
      recovered: false,
    })),
    patchDeployment: vi.fn(async () => ({
      deployment: deployment({ latest_revision_id: NEW_REVISION_ID }),
      revisionId: NEW_REVISION_ID,
      recovered: false,
    })),
    redeployRevision: vi.fn(async () => {
      throw httpFailure(405, { kind: 'unsupported' })
    }),
    deleteDeployment: vi.fn(async () => ({ alreadyGone: false })),
    listRevisions: vi.fn(async () => []),
    getRevision: vi.fn(async () => revision('DEPLOYED')),
    interruptRevision: vi.fn(async () => undefined),
    revisionLogs: vi.fn(async () => ({ entries: [], nextOffset: null })),
    ...changes,
  }
}

export type TestDeps = Deps & {
  lines: string[]
  groups: { title: string; lines: readonly string[] }[]
  warnings: string[]
  notices: string[]
  outputs: Record<string, string>
  state: Record<string, string>
  effects: ReturnType<typeof fakeEffects>
  abort: () => void
}

/** The effects of a step, recorded. */
export function fakeDeps(changes: Partial<ControlPlane> = {}, onSleep?: (now: number) => void): TestDeps {
  const effects = fakeEffects(onSleep)
  const controller = new AbortController()
  const [lines, warnings, notices, groups]: [string[], string[], string[], TestDeps['groups']] = [[], [], [], []]
  const outputs: Record<string, string> = {}
  const state: Record<string, string> = {}
  const log: Log = {
    info: (line) => lines.push(line),
    notice: (line) => notices.push(line),
    warning: (line) => warnings.push(line),
    error: () => undefined,
    group: (title, content) => groups.push({ title, lines: content }),
  }
  const io = {
    setOutput: (name: string, value: string) => {
      outputs[name] = value
    },
    saveState: (key: string, value: string) => {
      state[key] = value
      return true
    },
  }
  const controlPlane = fakeControlPlane(changes)
  const journal = createJournal({ io, startedAt: effects.now() })
  return {
    controlPlane,
    once: controlPlane,
    agentServer: () => {
      throw new Error('this test has no agent server')
    },
    bulkExports: () => {
      throw new Error('this test has no bulk export')
    },
    checkout: () => undefined,
    redact: (text) => text.replaceAll('key-of-the-test', '***'),
    github: undefined,
    context: githubContext(),
    effects,
    log,
    journal,
    signal: controller.signal,
    lines,
    groups,
    warnings,
    notices,
    outputs,
    state,
    abort: () => controller.abort(new DOMException('received SIGINT', 'AbortError')),
  }
}

/** Inputs that deploy `main` of a repository to the deployment `agent`. */
export function inputs(changes: Partial<Inputs> = {}): DeployInputs {
  return {
    mode: 'deploy',
    apiKey: 'key-of-the-test',
    controlPlaneUrl: 'https://control-plane.example.com',
    dialect: 'spec',
    target: { name: 'agent' },
    source: { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json' },
    sourceConfig: {},
    skipUnchanged: false,
    rollbackOnFailure: false,
    dryRun: false,
    wait: true,
    timeoutMs: 600_000,
    onTimeout: 'leave',
    onCancel: 'leave',
    summary: true,
    warnings: [],
    ...changes,
  }
}

export const TARGET_BY_ID = { id: DEPLOYMENT_ID }
