import { exportSection } from '../export/section.ts'
import type { GithubContext } from '../github/context.ts'
import type { Inputs } from '../inputs.ts'
import type { Journal } from '../journal.ts'
import { formatDuration } from '../parse/duration.ts'
import { normaliseRepoUrl } from '../parse/repo-url.ts'
import { sweepSection } from '../preview/report.ts'
import { rollbackSection } from '../rollback/section.ts'
import { type OutputName, STATUSES, type Status } from '../registry.ts'
import { type ActionFailure, ERROR_CODES, errorAnchor } from './error-codes.ts'
import { gantt } from './gantt.ts'
import { block, clipBytes, code, inline, link, prose, shortCommit, table } from './markdown.ts'
import { smokeSection } from './smoke-section.ts'

/** The runner drops a summary of more than 1024 KiB as a whole; this leaves room for what other steps of it say. */
const SUMMARY_MAX_BYTES = 900_000
const LOG_LINES = 50

const HEADINGS: Readonly<Record<Status, string>> = {
  deployed: 'Deployed',
  unchanged: 'Unchanged',
  removed: 'Removed',
  skipped: 'Skipped',
  planned: 'Planned',
  exported: 'Exported',
  failed: 'Failed',
  'timed-out': 'Timed out',
  cancelled: 'Cancelled',
  superseded: 'Superseded',
  'rolled-back': 'Rolled back',
}

/** What the summary is made from. Every text in it has been redacted; none has been escaped. */
export type SummaryData = {
  status: Status
  failure: (Pick<ActionFailure, 'code' | 'message' | 'tried' | 'next'> & Partial<Pick<ActionFailure, 'aftermath'>>) | undefined
  outputs: Readonly<Partial<Record<OutputName, string>>>
  source: Inputs['source'] | undefined
  transitions: Journal['transitions']
  plan: Journal['plan']
  notes: Journal['notes']
  logTail: Journal['logTail']
  smokeTest: Journal['smokeTest']
  export: Journal['export']
  rollback?: Journal['rollback']
  sweep?: Journal['sweep']
  rateLimitWaitMs: number
  rateLimits?: readonly string[]
  startedAt: number
  endedAt: number
  github: Pick<GithubContext, 'serverUrl' | 'actionRepository'>
}

/** The job summary of one step, as GitHub-flavoured Markdown. */
export function renderSummary(data: SummaryData): string {
  const sections = [
    heading(data),
    failureBlock(data),
    facts(data),
    timeline(data),
    smokeSection(data.smokeTest),
    rollbackSection(data.rollback, data.endedAt),
    exportSection(data.export),
    sweepSection(data.sweep),
    planTable(data),
    remarks(data),
    log(data),
  ]
  return clipBytes(`${sections.filter((section) => section !== '').join('\n\n')}\n`, SUMMARY_MAX_BYTES)
}

/** The README's section about a code, when it is known where the README is. */
export function helpAddress({
  code,
  github,
}: {
  code: ActionFailure['code']
  github: SummaryData['github']
}): string | undefined {
  if (!/^[\w.-]+\/[\w.-]+$/.test(github.actionRepository)) return undefined
  return `${github.serverUrl}/${github.actionRepository}#${errorAnchor(code)}`
}

export function heading({ status, failure, outputs }: SummaryData): string {
  const name = outputs['deployment-name'] ?? outputs['deployment-id']
  const what = failure === undefined || status !== 'failed' ? HEADINGS[status] : ERROR_CODES[failure.code].title
  return `### ${STATUSES[status] ? '✅' : '❌'} ${what}${name === undefined ? '' : `: ${inline(name)}`}`
}

export function failureBlock({ failure, github }: SummaryData): string {
  if (failure === undefined) return ''
  const help = helpAddress({ code: failure.code, github })
  const name = `<code>${failure.code}</code>`
  const lines = failure.message.split('\n').map((line) => inline(line))
  return [
    `> **${help === undefined ? name : link(name, help)}** ${lines.join('<br>')}`,
    ...(failure.aftermath === undefined ? [] : [`> **Afterwards:** ${inline(failure.aftermath.replaceAll('\n', ' '))}`]),
    ...(failure.tried === undefined ? [] : [`> **What was tried:** ${inline(failure.tried)}`]),
    `> **What to do:** ${prose(failure.next)}`,
  ].join('\n>\n')
}

export function facts(data: SummaryData): string {
  const { outputs } = data
  // Nothing answers any more at the address of a deployment that is gone.
  const address = data.status === 'removed' ? undefined : outputs['deployment-url']
  const id = (name: OutputName): string | undefined => (outputs[name] === undefined ? undefined : code(outputs[name]))
  const deployment = [outputs['deployment-name'], outputs['deployment-id']]
    .filter((part) => part !== undefined)
    .map(code)
    .join(' ')
  const rows: [string, string | undefined][] = [
    ['Deployment', deployment === '' ? undefined : deployment + (outputs.created === 'true' ? ' (created)' : '')],
    ['Address', address === undefined ? undefined : link(inline(address), address)],
    ...sourceRows(servingSource(data)),
    ['Image', id('image-uri') ?? (data.source?.kind === 'external_docker' ? code(data.source.imageUri) : undefined)],
    ['Revision', id('revision-id')],
    ['Status', id('revision-status')],
    ['Previous revision', id('previous-revision-id')],
    ['Took', formatDuration(data.endedAt - data.startedAt)],
  ]
  const known = rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  // How long it took to find out that nothing can be done is not worth a table.
  return known.length === 1 && data.failure !== undefined ? '' : table(known)
}

type GitSource = {
  repoUrl: string
  repoRef?: string | undefined
  configPath?: string | undefined
  commit?: string | undefined
}

/** What the outputs are about: what the workflow wants, and after a rollback what it brought back. Undefined for an image. */
function servingSource({ status, source, outputs, rollback }: SummaryData): GitSource | undefined {
  if (source?.kind !== 'git_host') return undefined
  if (status !== 'rolled-back' || rollback === undefined) return { ...source, commit: outputs['commit-sha'] ?? source.commit }
  const { ref, configPath, commit } = rollback
  return { repoUrl: source.repoUrl, repoRef: ref, configPath, commit }
}

function sourceRows(source: GitSource | undefined): [string, string | undefined][] {
  if (source === undefined) return []
  const { repoUrl, repoRef, configPath, commit } = source
  return [
    ['Repository', link(code(repoUrl), repoUrl)],
    ['Ref', repoRef && code(repoRef)],
    ['Commit', commit === undefined ? undefined : link(code(shortCommit(commit)), commitAddress(repoUrl, commit))],
    ['Configuration', configPath && code(configPath)],
  ]
}

/** Where a git host of the usual kind shows a commit; not an address for hosts without a web page. */
function commitAddress(repoUrl: string, commit: string): string {
  const base = normaliseRepoUrl(repoUrl)
  const host = URL.canParse(base) ? new URL(base).hostname : ''
  const path = host.includes('gitlab') ? '-/commit' : host.includes('bitbucket') ? 'commits' : 'commit'
  return `${base}/${path}/${encodeURIComponent(commit)}`
}

export function timeline({ transitions, endedAt }: SummaryData): string {
  const chart = gantt(transitions, endedAt)
  return chart === '' ? '' : `#### Timeline\n\n${chart}`
}

function planTable({ plan }: SummaryData): string {
  if (plan === undefined) return ''
  if (plan.length === 0) return '#### Plan\n\nNo field differs: a deploy would make a new revision from the same source.'
  const rows = plan.map(
    ({ field, live, wanted }) => `| ${code(field)} | ${inline(shortCommit(live))} | ${inline(shortCommit(wanted))} |`,
  )
  return ['#### Plan', '', '| Field | Live | Wanted |', '|---|---|---|', ...rows].join('\n')
}

function remarks({ notes, rateLimitWaitMs, rateLimits = [] }: SummaryData): string {
  const names = rateLimits.length === 0 ? 'the control plane' : rateLimits.join(', ')
  const waited = rateLimitWaitMs < 1000 ? [] : [`Waited ${formatDuration(rateLimitWaitMs)} for the rate limit of ${names}.`]
  return [...waited, ...notes].map((note) => `- ${inline(note.replaceAll('\n', ' '))}`).join('\n')
}

function log({ logTail }: SummaryData): string {
  if (logTail === undefined) return ''
  const lines = logTail.lines.slice(-LOG_LINES)
  return `<details><summary>${inline(logTail.title)} (${lines.length} lines)</summary>\n\n${block(lines)}\n\n</details>`
}
