import type { FaultRule } from './fault-server.ts'

/** The search for a deployment. */
export const LIST: FaultRule = { method: 'GET', path: /\/v2\/deployments\?/ }
export const CREATE: FaultRule = { method: 'POST', path: /\/v2\/deployments$/ }
export const PATCH: FaultRule = { method: 'PATCH' }
/** The wait for a revision. */
export const POLL: FaultRule = { method: 'GET', path: /\/revisions\/[0-9a-f-]+$/ }
/** The reading of a deployment. */
export const READ: FaultRule = { method: 'GET', path: /\/v2\/deployments\/[0-9a-f-]+$/ }

/** The rule for every time. */
export const always = (rule: FaultRule): FaultRule => ({ ...rule, times: Infinity })
