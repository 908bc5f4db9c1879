import { describe, expect, it } from 'vitest'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import { renderSummary, type SummaryData } from '../../../src/action/report/summary.ts'
import { NEW_REVISION_ID, OLD_REVISION_ID, REPO_URL } from '../support/answers.ts'
import { summaryFields } from './support.ts'

const [BAD, GOOD] = ['b'.repeat(40), 'a'.repeat(40)]

const SOURCE = { kind: 'git_host', repoUrl: REPO_URL, repoRef: 'next', configPath: 'next.json' } as const
const OUTPUTS = { 'deployment-name': 'agent', 'deployment-url': 'https://agent.example.com', 'commit-sha': BAD }

const render = (changes: Partial<SummaryData> = {}): string =>
  renderSummary(summaryFields({ source: SOURCE, outputs: OUTPUTS, endedAt: 200, ...changes }))

const rowOf = (name: string, markdown: string): string | undefined =>
  markdown
    .split('\n')
    .find((line) => line.startsWith(`| ${name} |`))
    ?.replace(/<a [^>]*>|<\/a>|<\/?code>/g, '')

describe('the table of the job summary', () => {
  it('tells of what the workflow wants', () => {
    const markdown = render()
    expect(rowOf('Address', markdown)).toBe('| Address | https&#58;//agent.example.com |')
    expect(rowOf('Ref', markdown)).toBe('| Ref | next |')
    expect(rowOf('Commit', markdown)).toBe(`| Commit | ${BAD.slice(0, 12)} |`)
    expect(rowOf('Configuration', markdown)).toBe('| Configuration | next.json |')
  })

  const rollback = {
    failedRevisionId: NEW_REVISION_ID,
    goodRevisionId: OLD_REVISION_ID,
    revisionId: OLD_REVISION_ID,
    status: 'DEPLOYED',
    commit: GOOD,
    ref: 'main',
    configPath: 'langgraph.json',
    transitions: [],
    smokeTest: undefined,
    logTail: undefined,
  }

  it('tells of what serves after a rollback, by the ref and the commit of the same revision', () => {
    const markdown = render({ status: 'rolled-back', rollback, outputs: { 'commit-sha': GOOD } })
    expect(rowOf('Ref', markdown)).toBe('| Ref | main |')
    expect(rowOf('Commit', markdown)).toBe(`| Commit | ${GOOD.slice(0, 12)} |`)
    expect(rowOf('Configuration', markdown)).toBe('| Configuration | langgraph.json |')
    expect(markdown.replace(/href="[^"]*"/g, '')).not.toContain(GOOD)
  })

  it('leaves out what the control plane does not tell of the revision that was brought back', () => {
    const unknown = { ...rollback, ref: undefined, configPath: undefined, commit: undefined }
    const markdown = render({ status: 'rolled-back', rollback: unknown })
    for (const name of ['Ref', 'Commit', 'Configuration']) expect(rowOf(name, markdown)).toBeUndefined()
    expect(rowOf('Repository', markdown)).toBeDefined()
  })

  it('tells of the image that the revision was made from, and of the wanted one where that is not known', () => {
    const source = { kind: 'external_docker', imageUri: 'registry.example.com/agent:2' } as const
    const outputs = { 'image-uri': 'registry.example.com/agent:1' }
    expect(rowOf('Image', render({ source }))).toBe('| Image | registry.example.com/agent&#58;2 |')
    for (const status of ['deployed', 'rolled-back'] as const)
      expect(rowOf('Image', render({ source, outputs, rollback, status }))).toBe('| Image | registry.example.com/agent&#58;1 |')
    expect(rowOf('Image', render({}))).toBeUndefined()
  })

  it('tells how long the step took', () => {
    expect(rowOf('Took', render({ startedAt: 7000, endedAt: 10_000 }))).toBe('| Took | 3 s |')
  })

  it('is about the wanted source where the rollback did not succeed', () => {
    expect(rowOf('Ref', render({ status: 'failed', rollback }))).toBe('| Ref | next |')
  })

  it('has no address of a deployment that was removed', () => {
    const markdown = render({ status: 'removed', source: undefined })
    expect(rowOf('Deployment', markdown)).toBe('| Deployment | agent |')
    expect(markdown).not.toContain('agent.example.com')
  })

  it('is left out where it would only say how long a failure took', () => {
    const failure = new ActionFailure({ code: 'E_INPUT', happened: 'api-key is required.' })
    const nothing = { outputs: { status: 'failed' }, source: undefined }
    expect(render({ ...nothing, status: 'failed', failure })).not.toMatch(/Took|\|/)
    expect(rowOf('Took', render({ ...nothing, status: 'removed', endedAt: 3000 }))).toBe('| Took | 3 s |')
    const named = { ...nothing, outputs: { 'deployment-name': 'agent' } }
    expect(rowOf('Took', render({ ...named, status: 'failed', failure, endedAt: 3000 }))).toBe('| Took | 3 s |')
  })
})

describe('what to do', () => {
  it('shows names of inputs as code', () => {
    const failure = new ActionFailure({ code: 'E_TIMEOUT', happened: 'It was slow.' })
    expect(render({ status: 'timed-out', failure })).toContain(
      '> **What to do:** Look at the status of the revision, and raise <code>timeout</code> if it was merely slow. ' +
        'On the hosted service a first deploy takes about 15 minutes.',
    )
  })
})

describe('the plan', () => {
  it('has commits as long as the other tables', () => {
    const markdown = render({ status: 'planned', plan: [{ field: 'commit', live: '(not told)', wanted: GOOD }] })
    expect(markdown).toContain(`| <code>commit</code> | (not told) | ${GOOD.slice(0, 12)} |`)
  })
})
