import { code, inline } from '../report/markdown.ts'

/** What became of one deployment that a sweep looked at. */
export type SweptPreview = {
  name: string
  pullRequest: number
  /** `unproven`: whose preview it is could not be told, so that it was left alone. */
  verdict: 'removed' | 'to remove' | 'kept' | 'unproven' | 'failed'
  /** A clause: "the pull request is closed". */
  why: string
}

const SIGNS: Readonly<Record<SweptPreview['verdict'], string>> = {
  removed: '🗑️ removed',
  'to remove': '🗑️ to remove',
  kept: 'kept',
  unproven: '⚠️ left alone',
  failed: '❌ not removed',
}

/** How many previews of a sweep have each verdict: `2 removed, 1 kept`. */
export function countSwept(previews: readonly SweptPreview[]): string {
  const verdicts = Object.keys(SIGNS) as SweptPreview['verdict'][]
  const words = { removed: 'removed', 'to remove': 'to remove', kept: 'kept', unproven: 'left alone', failed: 'not removed' }
  const counts = verdicts.map((verdict) => ({ verdict, count: previews.filter((preview) => preview.verdict === verdict).length }))
  const told = counts.filter(({ count }) => count > 0).map(({ verdict, count }) => `${count} ${words[verdict]}`)
  return told.length === 0 ? 'no previews' : told.join(', ')
}

/** The section of the job summary. */
export function sweepSection(previews: readonly SweptPreview[] | undefined): string {
  if (previews === undefined) return ''
  if (previews.length === 0) return '#### Previews\n\nThere are none.'
  const rows = previews.map(
    ({ name, pullRequest, verdict, why }) => `| ${code(name)} | ${pullRequest} | ${SIGNS[verdict]} | ${inline(why)} |`,
  )
  return ['#### Previews', '', '| Deployment | Pull request | | Why |', '|---|---|---|---|', ...rows].join('\n')
}
