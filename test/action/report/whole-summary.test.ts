import { describe, expect, it } from 'vitest'
import { renderComment, startedAtOf } from '../../../src/action/report/comment.ts'
import { helpAddress, renderSummary } from '../../../src/action/report/summary.ts'
import { smokeSection } from '../../../src/action/report/smoke-section.ts'
import { rollbackSection, type RollbackReport } from '../../../src/action/rollback/section.ts'
import type { SmokeReport } from '../../../src/action/smoke/report.ts'
import type { Status } from '../../../src/action/registry.ts'
import { GITHUB, summaryFields } from './support.ts'

const SHA = 'c0ffee0000000000000000000000000000000000'

const SMOKE: SmokeReport = {
  result: 'passed',
  address: 'https://agent.example.com/',
  assistant: 'agent',
  streamMode: 'updates',
  attempts: 2,
  events: 'metadata 1, updates 2',
  firstEventMs: 35,
  endMs: 612,
  said: ['pong', ''],
}
const SMOKE_TEXT = `#### Smoke test: passed ✅

| | |
|---|---|
| Assistant | <code>agent</code> |
| Stream mode | <code>updates</code> |
| Attempts | 2 |
| Events | metadata 1, updates 2 |
| First event | after 35 ms |
| End | after 612 ms |

What the agent said:

<pre>pong
 </pre>`

const ROLLBACK: RollbackReport = {
  failedRevisionId: 'bad',
  goodRevisionId: 'good',
  revisionId: 'back',
  status: 'DEPLOYED',
  commit: SHA,
  transitions: [{ status: 'DEPLOYED', at: 1000 }],
  smokeTest: {
    ...SMOKE,
    result: 'failed',
    assistant: undefined,
    attempts: 1,
    firstEventMs: undefined,
    endMs: undefined,
    said: [],
  },
  logTail: { title: 'The end of the log', lines: Array.from({ length: 51 }, (_, index) => `l${index}`) },
}
const LAST_FIFTY = Array.from({ length: 50 }, (_, index) => `l${index + 1}`).join('\n')
const ROLLBACK_TEXT = `#### Rollback

| | |
|---|---|
| Failed revision | <code>bad</code> |
| Last good revision | <code>good</code> |
| Brought back by | <code>back</code> |
| Status | <code>DEPLOYED</code> |
| Commit | <code>c0ffee000000</code> |

\`\`\`mermaid
gantt
  dateFormat x
  axisFormat %H:%M:%S
  todayMarker off
  tickInterval 1second
  section Deploy
  DEPLOYED :done, milestone, s0, 1000, 5000
\`\`\`

#### Smoke test after the rollback: failed ❌

| | |
|---|---|
| Stream mode | <code>updates</code> |
| Events | metadata 1, updates 2 |

<details><summary>The end of the log (50 lines)</summary>

<pre>${LAST_FIFTY}</pre>

</details>`

const TIMELINE_TEXT = `\`\`\`mermaid
gantt
  dateFormat x
  axisFormat %H:%M:%S
  todayMarker off
  tickInterval 1second
  section Queue
  QUEUED :s0, 0, 2000
  section Other
  status INTERRUPTED :crit, milestone, s1, 2000, 5000
\`\`\``
const TRANSITIONS = [
  { status: 'QUEUED', at: 0 },
  { status: 'INTERRUPTED', at: 2000 },
]

describe('a section', () => {
  it('of a smoke test', () => {
    expect(smokeSection(SMOKE)).toBe(SMOKE_TEXT)
  })

  it('of a rollback', () => {
    expect(rollbackSection(ROLLBACK, 5000)).toBe(ROLLBACK_TEXT)
    const bare = { ...ROLLBACK, revisionId: undefined, status: undefined, commit: undefined, transitions: [] }
    expect(rollbackSection({ ...bare, smokeTest: undefined, logTail: undefined }, 5000)).toBe(
      '#### Rollback\n\n| | |\n|---|---|\n| Failed revision | <code>bad</code> |\n| Last good revision | <code>good</code> |',
    )
  })
})

describe('the whole summary', () => {
  it('of a step that went well', () => {
    const text = renderSummary(
      summaryFields({
        outputs: {
          'deployment-name': 'agent',
          'deployment-id': 'id-1',
          'deployment-url': 'https://agent.example.com',
          created: 'true',
          'image-uri': 'r.example.com/built',
          'revision-id': 'r-2',
          'revision-status': 'DEPLOYED',
          'previous-revision-id': 'r-1',
          'commit-sha': SHA,
        },
        source: { kind: 'git_host', repoUrl: 'https://github.com/acme/agents.git', repoRef: 'main', configPath: 'a.json' },
        smokeTest: SMOKE,
        notes: ['One\nnote.', 'Another.'],
        rateLimitWaitMs: 1000,
      }),
    )
    expect(text).toBe(`### ✅ Deployed: agent

| | |
|---|---|
| Deployment | <code>agent</code> <code>id-1</code> (created) |
| Address | <a href="https://agent.example.com/">https&#58;//agent.example.com</a> |
| Repository | <a href="https://github.com/acme/agents.git"><code>https&#58;//github.com/acme/agents.git</code></a> |
| Ref | <code>main</code> |
| Commit | <a href="https://github.com/acme/agents/commit/${SHA}"><code>c0ffee000000</code></a> |
| Configuration | <code>a.json</code> |
| Image | <code>r.example.com/built</code> |
| Revision | <code>r-2</code> |
| Status | <code>DEPLOYED</code> |
| Previous revision | <code>r-1</code> |
| Took | 5 s |

${SMOKE_TEXT}

- Waited 1 s for the rate limit of the control plane.
- One note.
- Another.
`)
  })

  it('of a step that failed', () => {
    const text = renderSummary(
      summaryFields({
        status: 'failed',
        failure: {
          code: 'E_BUILD_FAILED',
          message: 'The build failed.\nSee <log>.',
          tried: 'Once.',
          next: 'Mend `x`.',
          aftermath: 'It was\nrolled back.',
        },
        outputs: { 'deployment-id': 'id-1' },
        source: { kind: 'external_docker', imageUri: 'r.example.com/agent' },
        transitions: TRANSITIONS,
        rollback: ROLLBACK,
        logTail: { title: 'Build log', lines: ['one', '<two>'] },
        rateLimitWaitMs: 61_000,
        rateLimits: ['GitHub', 'the control plane'],
      }),
    )
    expect(text).toBe(`### ❌ Build failed: id-1

> **<a href="https://github.com/acme/deploy-agent-server#e_build_failed"><code>E_BUILD_FAILED</code></a>** The build failed.<br>See &#60;log&#62;.
>
> **Afterwards:** It was rolled back.
>
> **What was tried:** Once.
>
> **What to do:** Mend <code>x</code>.

| | |
|---|---|
| Deployment | <code>id-1</code> |
| Image | <code>r.example.com/agent</code> |
| Took | 5 s |

#### Timeline

${TIMELINE_TEXT}

${ROLLBACK_TEXT}

- Waited 1 min 1 s for the rate limit of GitHub, the control plane.

<details><summary>Build log (2 lines)</summary>

<pre>one
&lt;two&gt;</pre>

</details>
`)
  })

  it('of a plan', () => {
    const head = '### ✅ Planned\n\n| | |\n|---|---|\n| Took | 5 s |\n\n#### Plan\n\n'
    const change = { field: 'repo_ref', live: 'main', wanted: SHA }
    expect(renderSummary(summaryFields({ status: 'planned', plan: [change] }))).toBe(
      `${head}| Field | Live | Wanted |\n|---|---|---|\n| <code>repo_ref</code> | main | c0ffee000000 |\n`,
    )
    expect(renderSummary(summaryFields({ status: 'planned', plan: [] }))).toBe(
      `${head}No field differs: a deploy would make a new revision from the same source.\n`,
    )
  })

  it('has the last fifty lines of a log, and no wait of less than a second', () => {
    const text = renderSummary(summaryFields({ logTail: ROLLBACK.logTail, rateLimitWaitMs: 999 }))
    expect(text).toBe(
      '### ✅ Deployed\n\n| | |\n|---|---|\n| Took | 5 s |\n\n' +
        `<details><summary>The end of the log (50 lines)</summary>\n\n<pre>${LAST_FIFTY}</pre>\n\n</details>\n`,
    )
  })

  it('is shorter than what the runner takes', () => {
    const text = renderSummary(summaryFields({ notes: Array.from({ length: 1000 }, () => 'x'.repeat(1000)) }))
    expect(Buffer.byteLength(text)).toBe(900_000)
    expect(text).toMatch(/xxx\n\nThe rest was left out: the summary was too long\.\n$/)
  })
})

describe('the heading', () => {
  const failure = { code: 'E_TIMEOUT', message: 'x', tried: undefined, next: 'y' } as const
  it.each<[Status, boolean, string]>([
    ['deployed', false, '### ✅ Deployed'],
    ['unchanged', false, '### ✅ Unchanged'],
    ['removed', false, '### ✅ Removed'],
    ['skipped', false, '### ✅ Skipped'],
    ['planned', false, '### ✅ Planned'],
    ['exported', false, '### ✅ Exported'],
    ['failed', false, '### ❌ Failed'],
    ['failed', true, '### ❌ Timed out'],
    ['timed-out', true, '### ❌ Timed out'],
    ['cancelled', true, '### ❌ Cancelled'],
    ['superseded', true, '### ❌ Superseded'],
    ['rolled-back', true, '### ❌ Rolled back'],
  ])('of %s (with a failure: %j)', (status, failed, expected) => {
    expect(renderSummary(summaryFields({ status, ...(failed ? { failure } : {}) })).split('\n')[0]).toBe(expected)
  })
})

describe('the address', () => {
  it.each([
    ['https://github.com/acme/a', `https://github.com/acme/a/commit/${SHA}`],
    ['https://gitlab.example.com/acme/a.git', `https://gitlab.example.com/acme/a/-/commit/${SHA}`],
    ['https://bitbucket.org/acme/a', `https://bitbucket.org/acme/a/commits/${SHA}`],
    ['https://git.example.com/gitlab/a', `https://git.example.com/gitlab/a/commit/${SHA}`],
  ])('of a commit of %s', (repoUrl, address) => {
    const source = { kind: 'git_host', repoUrl, repoRef: 'main', configPath: 'a.json', commit: SHA } as const
    expect(renderSummary(summaryFields({ source }))).toContain(`| Commit | <a href="${address}"><code>c0ffee000000</code></a> |`)
  })

  it('of a commit is none where the repository has no page', () => {
    const source = { kind: 'git_host', repoUrl: 'git@host:acme/a', repoRef: 'main', configPath: 'a.json', commit: SHA } as const
    const text = renderSummary(summaryFields({ source }))
    expect(text).toContain('| Commit | <code>c0ffee000000</code> |')
    expect(text).toContain('| Repository | <code>git&#64;host&#58;acme/a</code> |')
  })

  it.each([
    ['acme/deploy', 'https://github.com/acme/deploy#e_auth'],
    ['acme.x/de-p_l.oy', 'https://github.com/acme.x/de-p_l.oy#e_auth'],
    ['', undefined],
    ['acme', undefined],
    ['a/b/c', undefined],
    ['x acme/deploy', undefined],
    ['acme/deploy x', undefined],
  ])('of the help in %j', (actionRepository, address) => {
    expect(helpAddress({ code: 'E_AUTH', github: { ...GITHUB, actionRepository } })).toBe(address)
  })

  it('of the help is left out where it is not known', () => {
    const failure = { code: 'E_AUTH', message: 'No.', tried: undefined, next: 'Go.' } as const
    expect(renderSummary(summaryFields({ status: 'failed', failure, github: { ...GITHUB, actionRepository: '' } }))).toBe(
      '### ❌ Not allowed\n\n> **<code>E_AUTH</code>** No.\n>\n> **What to do:** Go.\n',
    )
  })
})

describe('the whole comment', () => {
  it('folds what is long', () => {
    const text = renderComment({
      data: summaryFields({ transitions: TRANSITIONS, smokeTest: SMOKE, rollback: ROLLBACK, startedAt: 0.4 }),
      key: 'staging',
      runUrl: 'https://github.com/acme/agents/actions/runs/1',
    })
    const [marker, started, ...rest] = text.split('\n')
    expect(marker).toMatch(/^<!-- .*-->$/)
    expect(started).toBe('<!-- started: 0 -->')
    const fold = (title: string, content: string) => `<details><summary>${title}</summary>\n\n${content}\n\n</details>`
    const body = (section: string) => section.split('\n').slice(2).join('\n')
    expect(rest.join('\n').trimStart()).toBe(
      `${[
        '### ✅ Deployed',
        '| | |\n|---|---|\n| Took | 5 s |',
        fold('Timeline', TIMELINE_TEXT),
        fold('Smoke test: passed ✅', body(SMOKE_TEXT)),
        fold('Rollback', body(ROLLBACK_TEXT)),
        '<a href="https://github.com/acme/agents/actions/runs/1">Log and summary of the workflow run</a>',
      ].join('\n\n')}\n`,
    )
  })

  it('has no address of a run that is not known', () => {
    const text = renderComment({ data: summaryFields(), key: 'staging', runUrl: undefined })
    expect(text.endsWith('| Took | 5 s |\n')).toBe(true)
  })

  it.each([
    ['as it is', '<!-- started: 12 -->', 12],
    ['with other text before it', `${'x'.repeat(1980)}<!-- started: 12 -->`, 12],
    ['with too much before it', `${'x'.repeat(1981)}<!-- started: 12 -->`, undefined],
    ['in fifteen digits', '<!-- started: 123456789012345 -->', 123_456_789_012_345],
    ['in sixteen', '<!-- started: 1234567890123456 -->', undefined],
    ['in none', '<!-- started:  -->', undefined],
    ['nowhere', '', undefined],
  ])('tells when its step began, %s', (_, body, started) => {
    expect(startedAtOf(body)).toBe(started)
  })
})
