import { randomUUID } from 'node:crypto'
import type { ControlPlane } from '../../../../src/client/control-plane.ts'
import {
  type DeploymentAnswer,
  deploymentAnswerSchema,
  type RevisionAnswer,
  revisionAnswerSchema,
} from '../../../../src/contract/answers.ts'
import { httpFailure } from '../../../support/request-failure.ts'

/** One deployment of the service, with what its revisions were built from. */
export type Held = {
  id: string
  name: string
  repoUrl: string | null
  createdAt: string
  /** Reads until it is gone; undefined while nobody has deleted it. */
  goingFor: number | undefined
  tracingProjectDeleted: boolean
  /** Oldest first. */
  revisions: { id: string; createdAt: string; commit: string | null; readsLeft: number; status: string }[]
}

export type Service = {
  controlPlane: ControlPlane
  /** What is there, what is on its way out included. */
  held: () => Held[]
  add: (fields: Partial<Held> & { name: string }) => Held
  /** Requests that change something, as `create agent-pr-7`. */
  changes: string[]
  /** Projects that outlived their deployment: their names stay taken. */
  leftProjects: Set<string>
}

/**
 * A control plane in memory, which does in the background what the real one does there: builds take so many looks, deletions too, names
 * stay taken until the end. `pause` is awaited before each request is answered, so that steps mix in any order.
 */
export function createService({
  pause = async () => undefined,
  buildReads = 3,
  deletionReads = 3,
  headOf = () => 'c'.repeat(40),
  now = () => Date.UTC(2026, 0, 1),
}: {
  pause?: () => Promise<void>
  buildReads?: number
  deletionReads?: number
  /** The commit that a branch points at when its build begins. */
  headOf?: (ref: string) => string
  now?: () => number
} = {}): Service {
  const deployments = new Map<string, Held>()
  const [changes, leftProjects] = [[] as string[], new Set<string>()]

  const add: Service['add'] = (fields) => {
    const createdAt = new Date(now()).toISOString()
    const held: Held = {
      id: randomUUID(),
      repoUrl: null,
      createdAt,
      goingFor: undefined,
      tracingProjectDeleted: false,
      revisions: [],
      ...fields,
    }
    deployments.set(held.id, held)
    return held
  }
  const notFound = (id: string) => httpFailure(404, { detail: `Deployment ID ${id} not found.` })
  const get = (id: string): Held => {
    const held = deployments.get(id)
    if (held === undefined) throw notFound(id)
    return held
  }
  /** One look brings a deletion forward, whoever looks. */
  const look = (id: string): Held => {
    const held = get(id)
    if (held.goingFor === undefined) return held
    if (held.goingFor-- > 0) return held
    deployments.delete(id)
    if (!held.tracingProjectDeleted) leftProjects.add(held.name)
    throw notFound(id)
  }
  const makeRevision = (held: Held, ref: string | null | undefined) => {
    for (const one of held.revisions) if (one.readsLeft > 0) [one.status, one.readsLeft] = ['SKIPPED', 0]
    const commit = typeof ref === 'string' ? headOf(ref) : null
    held.revisions.push({
      id: randomUUID(),
      createdAt: new Date(now()).toISOString(),
      commit,
      readsLeft: buildReads,
      status: 'BUILDING',
    })
  }
  const answer = (held: Held): DeploymentAnswer =>
    deploymentAnswerSchema.parse({
      id: held.id,
      name: held.name,
      status: held.goingFor === undefined ? 'READY' : 'AWAITING_DELETE',
      source: held.repoUrl === null ? 'external_docker' : 'git_host',
      source_config: { repo_url: held.repoUrl },
      created_at: held.createdAt,
      latest_revision_id: held.revisions.at(-1)?.id ?? null,
      active_revision_id: held.revisions.findLast(({ status }) => status === 'DEPLOYED')?.id ?? null,
    })
  const revisionAnswer = ({ id, createdAt, commit, status }: Held['revisions'][number]): RevisionAnswer =>
    revisionAnswerSchema.parse({ id, created_at: createdAt, status, source_revision_config: { repo_commit_sha: commit } })

  const controlPlane: ControlPlane = {
    listDeployments: async ({ nameContains = '' }) => {
      await pause()
      return [...deployments.values()].filter(({ name }) => name.includes(nameContains)).map(answer)
    },
    findDeploymentByName: async (name) => {
      await pause()
      const held = [...deployments.values()].find((one) => one.name === name)
      return held === undefined ? null : answer(held)
    },
    getDeployment: async (id) => {
      await pause()
      return answer(look(id))
    },
    createDeployment: async ({ name, source_config, source_revision_config }) => {
      await pause()
      const taken = [...deployments.values()].find((one) => one.name === name)
      if (taken !== undefined)
        throw httpFailure(409, { detail: `A deployment named ${name} already exists in this workspace (${taken.id}).` })
      if (leftProjects.has(name))
        throw httpFailure(409, { detail: `There already exists a project in LangSmith named: ${name}.` })
      changes.push(`create ${name}`)
      const held = add({ name, repoUrl: source_config.repo_url ?? null })
      makeRevision(held, source_revision_config.repo_ref)
      return { deployment: answer(held), recovered: false }
    },
    patchDeployment: async ({ id, body }) => {
      await pause()
      const held = get(id)
      if (held.goingFor !== undefined) throw httpFailure(409, { detail: `Deployment ID ${id} is being deleted.` })
      changes.push(`patch ${held.name}`)
      makeRevision(held, body.source_revision_config?.repo_ref)
      return { deployment: answer(held), revisionId: held.revisions.at(-1)?.id ?? null, recovered: false }
    },
    redeployRevision: async () => {
      throw httpFailure(405, { kind: 'unsupported' })
    },
    deleteDeployment: async ({ id, deleteTracingProject }) => {
      await pause()
      const held = deployments.get(id)
      if (held === undefined) return { alreadyGone: true }
      changes.push(`delete ${held.name}`)
      held.goingFor ??= deletionReads
      held.tracingProjectDeleted ||= deleteTracingProject
      for (const one of held.revisions) if (one.readsLeft > 0) [one.status, one.readsLeft] = ['INTERRUPTED', 0]
      return { alreadyGone: false }
    },
    listRevisions: async ({ deploymentId, max = Infinity, status }) => {
      await pause()
      const all = get(deploymentId).revisions.toReversed().map(revisionAnswer)
      return all.filter((one) => status === undefined || status.includes(one.status)).slice(0, max)
    },
    getRevision: async ({ deploymentId, revisionId }) => {
      await pause()
      const one = look(deploymentId).revisions.find(({ id }) => id === revisionId)
      if (one === undefined) throw httpFailure(404, { detail: `Revision ID ${revisionId} not found.` })
      if (one.readsLeft > 0 && --one.readsLeft === 0) one.status = 'DEPLOYED'
      return revisionAnswer(one)
    },
    interruptRevision: async () => undefined,
    revisionLogs: async () => ({ entries: [], nextOffset: null }),
  }
  return { controlPlane, held: () => [...deployments.values()], add, changes, leftProjects }
}
