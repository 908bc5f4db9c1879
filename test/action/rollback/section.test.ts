import { describe, expect, it } from 'vitest'
import { rollbackSection } from '../../../src/action/rollback/section.ts'

const REPORT = {
  failedRevisionId: 'failed-id',
  goodRevisionId: 'good-id',
  revisionId: 'new-id',
  status: 'DEPLOY_FAILED',
  commit: 'c0ffee',
  transitions: [
    { status: 'DEPLOYING', at: 0 },
    { status: 'DEPLOY_FAILED', at: 1000 },
  ],
  smokeTest: undefined,
  logTail: { title: 'The end of the <deploy> log', lines: ['</pre> @octocat', 'second'] },
}

describe('what the job summary tells of a rollback', () => {
  it('is nothing without one', () => {
    expect(rollbackSection(undefined, 0)).toBe('')
  })

  it('names the three revisions, the timeline and the log, which cannot break out', () => {
    const section = rollbackSection(REPORT, 2000)
    for (const id of ['failed-id', 'good-id', 'new-id', 'c0ffee']) expect(section).toContain(`<code>${id}</code>`)
    expect(section).toContain('```mermaid')
    expect(section).toContain('<pre>&lt;/pre&gt; @octocat\nsecond</pre>')
    expect(section).not.toContain('<deploy>')
  })

  it('shortens the commit, as the other tables do', () => {
    expect(rollbackSection({ ...REPORT, commit: 'c0ffee'.padEnd(40, '0') }, 2000)).toContain('<code>c0ffee000000</code>')
  })

  it('names the last good one once where it never stopped serving', () => {
    const section = rollbackSection({ ...REPORT, revisionId: 'good-id', transitions: [], logTail: undefined }, 0)
    expect(section.match(/good-id/g)).toHaveLength(1)
    expect(section).not.toContain('mermaid')
  })
})
