import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkflowEvent } from './runner/job-environment.ts'

/** Events as GitHub sends them, payloads in `events/`. `sha` is GITHUB_SHA, which is not always the commit of the source. */
const EVENTS = {
  push: { name: 'push', ref: 'refs/heads/feature/new-prompt', sha: '6113728f27ae82c7b1a177c8d03f9e96e0adf246' },
  'push-tag': { name: 'push', ref: 'refs/tags/v1.2.3', sha: '0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c' },
  release: { name: 'release', ref: 'refs/tags/v2.0.0-rc.1', sha: '3d5b7bd0a1c34a2a8a9c0b1d2e3f405162738495' },
  'pull-request': {
    name: 'pull_request',
    ref: 'refs/pull/7/merge',
    sha: 'aa218f56b14c9653891f9e74264a383fa43fefbd',
    headRef: 'feature/new-prompt',
    baseRef: 'main',
  },
  'workflow-dispatch': { name: 'workflow_dispatch', ref: 'refs/heads/main', sha: '7fd1a60b01f91b314f59955a4e4d4e80d8edf11d' },
} as const satisfies Record<string, Omit<WorkflowEvent, 'payload'>>

export type EventName = keyof typeof EVENTS

export function workflowEvent(event: EventName): WorkflowEvent {
  const payload: unknown = JSON.parse(readFileSync(join(import.meta.dirname, 'events', `${event}.json`), 'utf8'))
  return { ...EVENTS[event], payload }
}
