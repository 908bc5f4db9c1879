import type { Log } from '../log.ts'

/** What went wrong on the way to an agent, before it answered. */
export interface AgentFault {
  /** The deployment's; absent where only the revision is known. */
  readonly slug?: string
  readonly revisionId: string
  readonly error: Error
}

/** Tells the platform's log of faults between it and its agents; what a client gets is a refusal that names no cause. */
export function faultLog(log: Log): (fault: AgentFault) => void {
  return ({ error, ...which }) => log.warn({ ...which, error: error.message }, 'a request did not get through to its agent')
}
