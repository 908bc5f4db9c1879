import type { Source } from '../../../contract/revision.ts'
import type { RevisionStatus } from '../../../contract/status.ts'

/** One step of a revision's life. `source`: only for that source. */
export interface Transition {
  readonly from: RevisionStatus
  readonly to: RevisionStatus
  readonly when: string
  readonly source?: Source
}

/**
 * The state machine of a revision (specification 3.1, which names the statuses and leaves the transitions open). Whatever is not in this
 * table does not happen. `UNKNOWN` is never entered: this platform always knows.
 */
export const TRANSITIONS = [
  { from: 'CREATING', to: 'QUEUED', when: 'the deployment has what it needs' },
  { from: 'CREATING', to: 'CREATE_FAILED', when: 'the deployment cannot have what it needs, or the time limit passed' },
  { from: 'CREATING', to: 'INTERRUPTED', when: 'a user interrupted it, or deletes its deployment' },

  { from: 'QUEUED', to: 'AWAITING_BUILD', when: 'it is the newest that waits, and no other is worked on', source: 'git_host' },
  { from: 'QUEUED', to: 'AWAITING_DEPLOY', when: 'the same, and there is nothing to build' },
  { from: 'QUEUED', to: 'SKIPPED', when: 'the place is free, and a newer one waits too' },
  { from: 'QUEUED', to: 'INTERRUPTED', when: 'a user interrupted it, or deletes its deployment' },

  { from: 'AWAITING_BUILD', to: 'BUILDING', when: 'a worker is free', source: 'git_host' },
  { from: 'AWAITING_BUILD', to: 'BUILD_FAILED', when: 'the time limit passed', source: 'git_host' },
  { from: 'AWAITING_BUILD', to: 'INTERRUPTED', when: 'a user interrupted it, or deletes its deployment', source: 'git_host' },

  { from: 'BUILDING', to: 'AWAITING_DEPLOY', when: 'the build is done', source: 'git_host' },
  { from: 'BUILDING', to: 'BUILD_FAILED', when: 'the build failed, or the time limit passed', source: 'git_host' },
  { from: 'BUILDING', to: 'AWAITING_BUILD', when: 'its worker stopped or was lost: another takes it up', source: 'git_host' },
  { from: 'BUILDING', to: 'INTERRUPTED', when: 'a user interrupted it, and its processes are gone', source: 'git_host' },

  { from: 'AWAITING_DEPLOY', to: 'DEPLOYING', when: 'a worker is free' },
  { from: 'AWAITING_DEPLOY', to: 'DEPLOY_FAILED', when: 'the time limit passed' },
  { from: 'AWAITING_DEPLOY', to: 'INTERRUPTED', when: 'a user interrupted it, or deletes its deployment' },

  { from: 'DEPLOYING', to: 'DEPLOYED', when: 'the agent server answers, and requests go to it' },
  { from: 'DEPLOYING', to: 'DEPLOY_FAILED', when: 'the agent server does not come up, or the time limit passed' },
  { from: 'DEPLOYING', to: 'AWAITING_DEPLOY', when: 'its worker stopped or was lost: another takes it up' },
  { from: 'DEPLOYING', to: 'AWAITING_BUILD', when: 'what was built for it is gone: it is built again', source: 'git_host' },
  { from: 'DEPLOYING', to: 'INTERRUPTED', when: 'a user interrupted it, and its processes are gone' },
] as const satisfies readonly Transition[]

/** Statuses in which a revision holds its deployment's one place of work: the next in the queue waits. */
export const WORKED_ON = ['AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING'] as const satisfies readonly RevisionStatus[]

/** Statuses in which a revision waits for a worker. */
export const WAITING = ['AWAITING_BUILD', 'AWAITING_DEPLOY'] as const satisfies readonly RevisionStatus[]

/** Statuses in which a worker holds a lease. */
export const LEASED = ['BUILDING', 'DEPLOYING'] as const satisfies readonly RevisionStatus[]

/** Statuses that may still change. */
export const UNFINISHED = ['CREATING', 'QUEUED', ...WORKED_ON] as const satisfies readonly RevisionStatus[]

export function isTransition({ from, to, source }: { from: RevisionStatus; to: RevisionStatus; source: Source }): boolean {
  const table: readonly Transition[] = TRANSITIONS
  return table.some((step) => step.from === from && step.to === to && (step.source === undefined || step.source === source))
}

export function isWorkedOn(status: RevisionStatus): boolean {
  return (WORKED_ON as readonly string[]).includes(status)
}

export function isUnfinished(status: RevisionStatus): boolean {
  return (UNFINISHED as readonly string[]).includes(status)
}

/** The status of a revision that fails while in `status`. */
export function failureOf(status: RevisionStatus): 'CREATE_FAILED' | 'BUILD_FAILED' | 'DEPLOY_FAILED' {
  if (status === 'CREATING') return 'CREATE_FAILED'
  return status === 'AWAITING_BUILD' || status === 'BUILDING' ? 'BUILD_FAILED' : 'DEPLOY_FAILED'
}
