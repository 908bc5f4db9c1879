import type { SummaryData } from '../../../src/action/report/summary.ts'

export const GITHUB = { serverUrl: 'https://github.com', actionRepository: 'acme/deploy-agent-server' }

/** A step that deployed within 5 s, and of which nothing else is known. */
export function summaryFields(changes: Partial<SummaryData> = {}): SummaryData {
  return {
    status: 'deployed',
    failure: undefined,
    outputs: {},
    source: undefined,
    transitions: [],
    plan: undefined,
    notes: [],
    logTail: undefined,
    smokeTest: undefined,
    export: undefined,
    rateLimitWaitMs: 0,
    startedAt: 0,
    endedAt: 5000,
    github: GITHUB,
    ...changes,
  }
}
