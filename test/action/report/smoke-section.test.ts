import { describe, expect, it } from 'vitest'
import { smokeSection } from '../../../src/action/report/smoke-section.ts'
import type { SmokeReport } from '../../../src/action/smoke/report.ts'
import { readable } from '../../support/readable.ts'

const report: SmokeReport = {
  result: 'passed',
  address: 'https://agent.example.com/',
  assistant: 'agent',
  streamMode: 'updates',
  attempts: 3,
  events: 'metadata 1, updates 2',
  firstEventMs: 35,
  endMs: 612,
  said: ['pong'],
}

describe('the section of the smoke test', () => {
  it('tells what came, and when', () => {
    const text = readable(smokeSection(report))
    for (const part of [
      'Smoke test: passed',
      '| Attempts | 3 |',
      '| Events | metadata 1, updates 2 |',
      'after 35 ms',
      'after 612 ms',
      '<pre>pong</pre>',
    ]) {
      expect(text).toContain(part)
    }
  })

  it('leaves out what is not known', () => {
    const text = smokeSection({
      ...report,
      result: 'failed',
      assistant: undefined,
      attempts: 1,
      firstEventMs: undefined,
      endMs: undefined,
      said: [],
    })
    expect(text).toContain('Smoke test: failed')
    for (const part of ['Assistant', 'Attempts', 'First event', 'End', '<pre>']) expect(text).not.toContain(part)
    expect(smokeSection(undefined)).toBe('')
  })

  it('lets nothing that an agent says act as Markdown or HTML', () => {
    const hostile = '</pre><script>x</script> ![a](https://evil.example/a.png) @octocat #1 ``` | cell'
    const text = smokeSection({ ...report, assistant: hostile, events: `${hostile} 1`, said: ['```', hostile, '', '# heading'] })
    expect(text).not.toContain('<script>')
    expect(text.match(/<\/pre>/g)).toHaveLength(1)
    expect(text.split('<pre>')[0]).not.toMatch(/!\[|@octocat|```/)
    expect(text.split('<pre>')[1]?.split('</pre>')[0]).not.toMatch(/\n\n/)
  })
})
