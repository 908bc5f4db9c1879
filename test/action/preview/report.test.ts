import { describe, expect, it } from 'vitest'
import { countSwept, type SweptPreview, sweepSection } from '../../../src/action/preview/report.ts'

const one = (verdict: SweptPreview['verdict'], pullRequest: number): SweptPreview => ({
  name: `agent-pr-${pullRequest}`,
  pullRequest,
  verdict,
  why: 'so',
})
const ALL = [one('failed', 1), one('unproven', 2), one('kept', 3), one('to remove', 4), one('removed', 5), one('kept', 6)]

describe('countSwept', () => {
  it('counts each verdict in words, in one order', () => {
    expect(countSwept(ALL)).toBe('1 removed, 1 to remove, 2 kept, 1 left alone, 1 not removed')
    expect(countSwept([one('kept', 1)])).toBe('1 kept')
    expect(countSwept([])).toBe('no previews')
  })
})

describe('sweepSection', () => {
  it('is a table with a row for each preview', () => {
    expect(sweepSection(ALL).split('\n')).toEqual([
      '#### Previews',
      '',
      '| Deployment | Pull request | | Why |',
      '|---|---|---|---|',
      '| <code>agent-pr-1</code> | 1 | ❌ not removed | so |',
      '| <code>agent-pr-2</code> | 2 | ⚠️ left alone | so |',
      '| <code>agent-pr-3</code> | 3 | kept | so |',
      '| <code>agent-pr-4</code> | 4 | 🗑️ to remove | so |',
      '| <code>agent-pr-5</code> | 5 | 🗑️ removed | so |',
      '| <code>agent-pr-6</code> | 6 | kept | so |',
    ])
  })

  it('says when there are none, and nothing when nothing was swept', () => {
    expect(sweepSection([])).toBe('#### Previews\n\nThere are none.')
    expect(sweepSection(undefined)).toBe('')
  })
})
