import { describe, expect, it } from 'vitest'
import { markerOf } from '../../../src/action/github/comment.ts'
import { renderComment, startedAtOf } from '../../../src/action/report/comment.ts'
import type { SummaryData } from '../../../src/action/report/summary.ts'
import { readable } from '../../support/readable.ts'
import { NEW_REVISION_ID, REPO_URL } from '../support/answers.ts'
import { summaryFields } from './support.ts'

const START = Date.UTC(2026, 0, 1)
const RUN = 'https://github.com/acme/agents/actions/runs/1/attempts/1'

function render(changes: Partial<SummaryData> = {}): string {
  const data = summaryFields({
    outputs: { 'deployment-name': 'agent', 'revision-id': NEW_REVISION_ID, 'deployment-url': 'https://agent.example.com' },
    source: { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'main', configPath: 'langgraph.json' },
    transitions: [
      { status: 'BUILDING', at: START },
      { status: 'DEPLOYED', at: START + 5000 },
    ],
    logTail: { title: 'Build log', lines: ['a line of the log'] },
    startedAt: START,
    endedAt: START + 6000,
    ...changes,
  })
  return renderComment({ data, key: 'staging', runUrl: RUN })
}

const FAILURE = { code: 'E_BUILD_FAILED', message: 'The build failed.', tried: 'Once.', next: 'Mend it.' } as const

describe('the comment', () => {
  it('has status, links, timeline and where the rest is, and no log', () => {
    const text = render()
    expect(text.startsWith(`${markerOf('staging')}\n`)).toBe(true)
    for (const part of ['✅ Deployed: agent', NEW_REVISION_ID, 'https://agent.example.com', '```mermaid', RUN])
      expect(readable(text)).toContain(part)
    expect(text).not.toContain('a line of the log')
    expect(startedAtOf(text)).toBe(START)
  })

  it('of a failure has its code, with where the help is', () => {
    const text = render({ status: 'failed', failure: FAILURE })
    expect(text).toContain('<a href="https://github.com/acme/deploy-agent-server#e_build_failed"><code>E_BUILD_FAILED</code></a>')
    expect(readable(text)).toContain('What to do:** Mend it.')
  })

  it('folds what is long, each under its own heading', () => {
    const smokeTest = {
      result: 'passed',
      streamMode: 'updates',
      attempts: 1,
      events: 'metadata 1',
      said: ['pong'],
      assistant: 'agent',
    }
    const text = render({ smokeTest: smokeTest as unknown as SummaryData['smokeTest'] })
    expect(text).toContain('<details><summary>Smoke test: passed ✅</summary>\n\n| | |')
    expect(text.match(/<details>/g)).toHaveLength(2)
    expect(text.match(/<\/details>/g)).toHaveLength(2)
  })

  it('names nobody and no issue, whatever a text says', () => {
    const hostile = 'by @octocat, see #1 and acme/agents#2 <img src=x> [a](javascript:1) --> ::error::x'
    const text = render({
      status: 'failed',
      failure: { ...FAILURE, message: hostile },
      outputs: { 'deployment-name': '@octocat #1' },
    })
    const shown = readable(text.replaceAll(/<!--.*?-->|<code>.*?<\/code>/g, ''))
    expect(shown).not.toMatch(/@octocat|#1|#2/)
    expect(shown).toContain('@\u200boctocat')
    expect(text).not.toMatch(/<img|\]\(/)
  })

  it('keeps what is code as it is', () => {
    const image = `registry.example.com/agent@sha256:${'a'.repeat(64)}`
    expect(readable(render({ source: { kind: 'external_docker', imageUri: image } }))).toContain(image)
  })

  it('is never longer than GitHub takes', () => {
    const text = render({
      status: 'failed',
      failure: { ...FAILURE, message: '@'.repeat(200_000).replaceAll(/.{1000}/g, '$&\n') },
    })
    expect(text.length).toBeLessThanOrEqual(65_535)
    expect(text.startsWith(markerOf('staging'))).toBe(true)
  })

  it('tells when its step began only by its own line', () => {
    expect(startedAtOf('<!-- deploy-agent-server: x -->\nsomebody: <!-- started: x -->')).toBeUndefined()
  })
})
