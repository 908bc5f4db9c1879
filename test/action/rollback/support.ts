import type { AgentServer } from '../../../src/client/agent-server.ts'
import type { ControlPlane } from '../../../src/client/control-plane.ts'
import type { Inputs } from '../../../src/action/inputs.ts'
import { run } from '../../../src/action/main.ts'
import type { SmokeTest } from '../../../src/action/smoke/smoke-test.ts'
import type { DeploymentPatch } from '../../../src/contract/deployment.ts'
import { httpFailure } from '../../support/request-failure.ts'
import { deployment, revision } from '../support/answers.ts'
import { fakeDeps, inputs } from '../support/deps.ts'

export const GOOD = '00000000-0000-4000-8000-00000000000a'
export const BAD = '00000000-0000-4000-8000-00000000000b'
export const BACK = '00000000-0000-4000-8000-00000000000c'
export const OTHER = '00000000-0000-4000-8000-00000000000d'
export const GOOD_COMMIT = 'a'.repeat(40)
export const BAD_COMMIT = 'b'.repeat(40)
export const TEST: SmokeTest = { input: {}, assistant: 'agent', streamMode: 'updates', timeoutMs: 60_000 }

type Source = Record<string, string>
type Revision = { id: string; status: string; source: Source }

/** One deployment with a good revision, kept in memory. The first change makes `BAD`, the second `BACK`. */
export type World = {
  revisions: Revision[]
  /** Null: nothing serves. Undefined: the control plane does not tell. */
  active: string | null | undefined
  /** How the next revisions end, `BAD` first. */
  ends: string[]
  /** The commits that branches and tags are at. */
  heads: Record<string, string>
  buildOnPush: boolean
  canRedeploy: boolean | 'latest only'
  changes: string[]
  patches: DeploymentPatch[]
}

export function world(changes: Partial<World> = {}): World {
  const source = { repo_ref: 'main', graph_config_path: 'langgraph.json', repo_commit_sha: GOOD_COMMIT }
  return {
    revisions: [{ id: GOOD, status: 'DEPLOYED', source }],
    active: GOOD,
    ends: ['DEPLOYED', 'DEPLOYED'],
    heads: { main: BAD_COMMIT, 'refs/tags/v1': GOOD_COMMIT, 'refs/tags/v2': BAD_COMMIT },
    buildOnPush: false,
    canRedeploy: true,
    changes: [],
    patches: [],
    ...changes,
  }
}

function newest({ revisions }: World): Revision {
  return revisions.at(-1)!
}

/** A revision that comes to its end at once. */
function add(state: World, source: Source): string {
  const id = [BAD, BACK][state.revisions.length - 1] ?? OTHER
  const status = state.ends.shift() ?? 'DEPLOYED'
  state.revisions.push({ id, status, source })
  if (status === 'DEPLOYED' && state.active !== undefined) state.active = id
  return id
}

export function planeOf(state: World): Partial<ControlPlane> {
  const answer = () => {
    const { source, id } = newest(state)
    return deployment({
      source: source['repo_ref'] === undefined ? 'external_docker' : 'git_host',
      source_config: { repo_url: 'https://github.com/acme/agents', build_on_push: state.buildOnPush },
      source_revision_config: source,
      latest_revision_id: id,
      active_revision_id: state.active,
    })
  }
  const made = (revisionId: string | null) => ({ deployment: answer(), revisionId, recovered: false })
  return {
    findDeploymentByName: async () => answer(),
    getDeployment: async () => answer(),
    getRevision: async ({ revisionId }) => {
      const found = state.revisions.find(({ id }) => id === revisionId)
      if (found === undefined) throw httpFailure(404)
      return revision(found.status, { id: found.id, source_revision_config: found.source })
    },
    listRevisions: async ({ status }) =>
      state.revisions
        .toReversed()
        .filter((found) => status === undefined || status.includes(found.status))
        .map((found) => revision(found.status, { id: found.id, source_revision_config: found.source })),
    patchDeployment: async ({ body }) => {
      state.patches.push(body)
      const wanted = body.source_revision_config
      if (typeof body.source_config?.build_on_push === 'boolean') state.buildOnPush = body.source_config.build_on_push
      if (wanted === undefined || wanted === null) return made(null)
      state.changes.push(`patch ${wanted.repo_ref ?? wanted.image_uri}`)
      const commit = wanted.repo_ref === undefined ? {} : { repo_commit_sha: state.heads[wanted.repo_ref ?? ''] ?? BAD_COMMIT }
      return made(add(state, { ...newest(state).source, ...(wanted as Source), ...commit }))
    },
    redeployRevision: async ({ revisionId }) => {
      if (state.canRedeploy === false) throw httpFailure(404, { kind: 'unsupported', summary: 'answered 404: no such way' })
      if (state.canRedeploy === 'latest only') throw httpFailure(400)
      state.changes.push(`redeploy ${revisionId}`)
      return made(add(state, { ...state.revisions.find(({ id }) => id === revisionId)!.source }))
    },
  }
}

/** An agent server that answers a run well, or with an error event, as `answersWell` says. */
export const agentThat =
  (answersWell: () => boolean) =>
  (url: string): AgentServer => ({
    url,
    streamRun: async function* () {
      yield answersWell()
        ? { event: 'updates', data: { node: { answer: 'pong' } } }
        : { event: 'error', data: { message: 'no such tool' } }
    },
    searchAssistants: async () => [],
    ok: async () => undefined,
  })

/** Runs a step that rolls back. `answers`: whether the agent answers well, at each smoke test. */
export async function step({
  state = world(),
  wanted = {},
  answers = [],
  plane = {},
  onSleep,
  onTest,
}: {
  state?: World
  wanted?: Partial<Inputs>
  answers?: boolean[]
  plane?: Partial<ControlPlane>
  onSleep?: (deps: ReturnType<typeof fakeDeps>) => void
  onTest?: () => void
}) {
  const deps: ReturnType<typeof fakeDeps> = fakeDeps({ ...planeOf(state), ...plane }, () => onSleep?.(deps))
  const left = [...answers]
  const tested: (string | null | undefined)[] = []
  const agentServer = agentThat(() => {
    tested.push(state.active)
    onTest?.()
    return left.shift() ?? true
  })
  const outcome = await run(inputs({ rollbackOnFailure: true, ...wanted }), { ...deps, agentServer })
  const failure = 'failure' in outcome ? outcome.failure : undefined
  return {
    ...deps,
    state,
    tested,
    failure,
    code: failure?.code,
    status: 'status' in outcome ? outcome.status : outcome.failure.status,
    story: failure?.aftermath ?? '',
  }
}
