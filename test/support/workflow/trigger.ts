import { matchesGlob } from 'node:path'
import type { EventsConfig } from '@actions/workflow-parser/model/workflow-template'
import type { WorkflowEvent } from '../runner/job-environment.ts'

/** Types of an event that start a workflow which names none; of the other events all do. */
const DEFAULT_TYPES: Readonly<Record<string, readonly string[]>> = {
  pull_request: ['opened', 'synchronize', 'reopened'],
  pull_request_target: ['opened', 'synchronize', 'reopened'],
}

type Filter = { types?: string[]; branches?: string[]; tags?: string[] }

/** Whether GitHub starts a workflow with this `on` for the event. */
export function isStartedBy(events: EventsConfig, event: WorkflowEvent): boolean {
  const filter = events[event.name] as Filter | undefined
  if (filter === undefined) return false
  const payload = event.payload as { action?: string; schedule?: string }
  if (event.name === 'schedule') return (events.schedule ?? []).some(({ cron }) => cron === payload.schedule)
  const unknown = Object.keys(filter).filter((name) => !['types', 'branches', 'tags', 'inputs'].includes(name))
  if (unknown.length > 0) throw new Error(`the workflow double does not know 'on.${event.name}.${unknown.join(', ')}'`)
  const types = filter.types ?? DEFAULT_TYPES[event.name]
  if (types !== undefined && !types.includes(payload.action ?? '')) return false
  return event.name === 'push' ? isPushWanted(filter, event.ref) : isMatch(filter.branches, event.baseRef ?? '')
}

function isPushWanted({ branches, tags }: Filter, ref: string): boolean {
  const [, kind, name = ''] = /^refs\/(heads|tags)\/(.+)$/.exec(ref) ?? []
  const [wanted, other] = kind === 'tags' ? [tags, branches] : [branches, tags]
  // A filter of one kind leaves the other kind out.
  return wanted === undefined ? other === undefined : isMatch(wanted, name)
}

function isMatch(patterns: readonly string[] | undefined, name: string): boolean {
  return patterns === undefined || patterns.some((pattern) => matchesGlob(name, pattern))
}
