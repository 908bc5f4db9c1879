import { describe, expect, it } from 'vitest'
import { conclude, unwritableOutput } from '../../src/action/conclude.ts'
import type { ExportReport } from '../../src/action/export/report.ts'
import type { GithubContext } from '../../src/action/github/context.ts'
import type { StepInputs } from '../../src/action/inputs.ts'
import { createJournal, type Journal } from '../../src/action/journal.ts'
import type { Outcome } from '../../src/action/main.ts'
import { createRedactor } from '../../src/action/masks.ts'
import type { SweptPreview } from '../../src/action/preview/report.ts'
import type { Status } from '../../src/action/registry.ts'
import { ActionFailure } from '../../src/action/report/error-codes.ts'
import { createLog } from '../../src/action/report/log.ts'
import { DEPLOYMENT_ID } from './support/answers.ts'
import { inputs } from './support/deps.ts'
import { githubContext } from './support/github.ts'

type Ending = {
  outcome: Outcome
  wanted?: StepInputs | undefined
  told?: (journal: Journal) => void
  github?: GithubContext
  outputProblem?: string
  summaryFault?: unknown
  rateLimitWaitMs?: number
}

/** Ends a step that took 125 s, and gives what people see of it. */
function concluded(ending: Ending): { green: boolean; written: string[]; summary: string } {
  const written: string[] = []
  let summary = ''
  const io = {
    readInputs: () => ({}) as never,
    getState: () => '',
    outputProblem: () => ending.outputProblem,
    setOutput: () => undefined,
    saveState: () => true,
    writeSummary: (markdown: string) => {
      if (ending.summaryFault !== undefined) throw ending.summaryFault
      summary = markdown
    },
  }
  const redactor = createRedactor()
  redactor.add(['hunter2-secret'])
  const journal = createJournal({ io, startedAt: 25_000 })
  ending.told?.(journal)
  const green = conclude({
    outcome: ending.outcome,
    inputs: 'wanted' in ending ? ending.wanted : inputs(),
    summary: true,
    journal,
    io,
    log: createLog({ write: (line) => written.push(line), redactor, token: () => 'stop' }),
    redactor,
    github: ending.github ?? githubContext(),
    rateLimitWaitMs: ending.rateLimitWaitMs ?? 0,
    now: 150_000,
  })
  return { green, written, summary }
}

const agent = (journal: Journal): void => journal.set('deployment-name', 'agent')
const agentAt = (journal: Journal): void => {
  agent(journal)
  journal.set('deployment-url', 'https://agent.example.com')
}
const agentById = (journal: Journal): void => {
  agent(journal)
  journal.set('deployment-id', DEPLOYMENT_ID)
}
const ofMode = (mode: StepInputs['mode']): StepInputs => ({ ...inputs(), mode }) as StepInputs

describe('the last line of a green step', () => {
  it.each<[string, Status, StepInputs | undefined, (journal: Journal) => void, string]>([
    ['skipped', 'skipped', undefined, agent, 'Skipped: nothing was changed.'],
    ['planned', 'planned', inputs(), agent, "Planned 'agent': nothing was changed."],
    ['unchanged, at an address', 'unchanged', inputs(), agentAt, "'agent' is unchanged: https://agent.example.com"],
    ['unchanged, without one', 'unchanged', inputs(), agent, "'agent' is unchanged"],
    ['removed', 'removed', ofMode('teardown'), agentById, "Removed 'agent' in 2 min 5 s."],
    ['nothing to remove', 'removed', ofMode('teardown'), agent, "There is no 'agent' to remove."],
    ['deployed', 'deployed', inputs(), agentAt, "Deployed 'agent' in 2 min 5 s: https://agent.example.com"],
    ['deployed, without an address', 'deployed', inputs(), agent, "Deployed 'agent' in 2 min 5 s"],
    ['not waited for', 'deployed', inputs({ wait: false }), agent, "Accepted 'agent' in 2 min 5 s"],
    ['without inputs', 'deployed', undefined, agent, "Deployed 'agent' in 2 min 5 s"],
    ['without a name', 'deployed', inputs(), () => undefined, "Deployed '' in 2 min 5 s"],
  ])('%s', (_, status, wanted, told, line) => {
    expect(concluded({ outcome: { status }, wanted, told })).toMatchObject({ green: true, written: [line] })
  })

  const swept = (verdict: SweptPreview['verdict']): SweptPreview => ({
    name: 'agent-pr-7',
    pullRequest: 7,
    verdict,
    why: 'closed',
  })

  it.each<[string, Status, SweptPreview[] | undefined, string]>([
    ['a sweep', 'removed', [swept('removed'), swept('removed'), swept('kept')], 'Swept: 2 removed, 1 kept.'],
    ['a planned sweep', 'planned', [swept('to remove')], 'Planned: 1 to remove.'],
    ['a sweep that did not come to look', 'removed', undefined, 'Swept: no previews.'],
  ])('%s', (_, status, previews, line) => {
    const told = (journal: Journal): void => {
      if (previews !== undefined) journal.setSweep(previews)
    }
    // The summary looks at more of the inputs than the line does.
    const wanted = { ...ofMode('sweep'), sweep: { baseName: 'agent' } } as unknown as StepInputs
    expect(concluded({ outcome: { status }, wanted, told }).written[0]).toBe(line)
  })

  const report = (changes: Partial<ExportReport>): ExportReport => ({
    id: 'export-1',
    status: 'COMPLETED',
    kind: 'one-off',
    projectId: 'project-1',
    start: '2026-01-01T00:00:00Z',
    end: '2026-01-02T00:00:00Z',
    intervalHours: undefined,
    filter: undefined,
    fields: undefined,
    destination: undefined,
    path: 's3://bucket/export_id=export-1/',
    rows: 12_345,
    files: 3,
    days: [],
    failures: [],
    moreFailures: 0,
    ...changes,
  })

  it.each<[string, Status, ExportReport | undefined, string]>([
    ['a planned export', 'planned', report({}), 'Planned the export: nothing was changed.'],
    ['a schedule that is there', 'unchanged', report({ kind: 'scheduled' }), 'The schedule export-1 is unchanged.'],
    ['an export that goes on', 'exported', report({ status: 'RUNNING' }), 'Accepted the export export-1.'],
    ['an export of which nothing is known', 'exported', undefined, 'Accepted the export .'],
    ['an export', 'exported', report({}), 'Exported 12,345 rows in 3 files: s3://bucket/export_id=export-1/'],
    ['an export without a path', 'exported', report({ path: undefined, rows: 1, files: 1 }), 'Exported 1 row in 1 file'],
  ])('%s', (_, status, exported, line) => {
    const told = (journal: Journal): void => {
      if (exported !== undefined) journal.setExport(exported)
    }
    const wanted = { ...ofMode('export'), export: {} } as unknown as StepInputs
    expect(concluded({ outcome: { status }, wanted, told }).written[0]).toBe(line)
  })
})

describe('the annotation of a red step', () => {
  const TITLE = '::error title=E_BUILD_FAILED%3A Build failed::'
  const failed = (changes: Partial<ConstructorParameters<typeof ActionFailure>[0]> = {}): ActionFailure =>
    new ActionFailure({ code: 'E_BUILD_FAILED', happened: 'It failed.', next: 'Correct it.', ...changes })
  const annotation = (failure: ActionFailure, ending: Partial<Ending> = {}): string[] =>
    concluded({ outcome: { failure }, ...ending }).written.flatMap((line) => line.split('%0A'))
  const HELP = 'More: https://github.com/acme/deploy-agent-server#e_build_failed'

  it('has a line for each thing that is known, and no more', () => {
    expect(annotation(failed())).toEqual([`${TITLE}It failed.`, 'What to do: Correct it.', HELP])
    expect(annotation(failed({ tried: 'Twice.', aftermath: 'It was rolled back.' }))).toEqual([
      `${TITLE}It failed.`,
      'Afterwards: It was rolled back.',
      'What was tried: Twice.',
      'What to do: Correct it.',
      HELP,
    ])
  })

  it('keeps the lines of what happened', () => {
    expect(annotation(failed({ happened: 'One.\nTwo.' })).slice(0, 2)).toEqual([`${TITLE}One.`, 'Two.'])
  })

  it('names the section where it does not know the address of the README', () => {
    const github = githubContext({ actionRepository: '' })
    expect(annotation(failed(), { github }).at(-1)).toBe('More: README, section E_BUILD_FAILED')
  })

  it('ends with the end of the log, where there is any', () => {
    const withLog = (lines: string[]): string[] =>
      annotation(failed(), { told: (journal) => journal.setLogTail({ title: 'The end of the log', lines }) })
    expect(withLog(['a', 'b']).slice(2)).toEqual([HELP, '', 'The end of the log:', 'a', 'b'])
    expect(withLog([])).toEqual([`${TITLE}It failed.`, 'What to do: Correct it.', HELP])
  })

  const cut = (length: number): string => `${'x'.repeat(length - 1)}…`

  it('cuts each part, and what happened earlier where the aftermath is told too', () => {
    const long = 'x'.repeat(4000)
    const half = 'x'.repeat(1500)
    expect(annotation(failed({ happened: `${half}\n${half}` })).slice(0, 2)).toEqual([`${TITLE}${half}`, cut(1099)])
    const parts = annotation(failed({ happened: long, aftermath: long, tried: long, next: long }), {
      told: (journal) => journal.setLogTail({ title: 'log', lines: [long] }),
    })
    expect(parts).toEqual([
      `${TITLE}${cut(1800)}`,
      `Afterwards: ${cut(900)}`,
      `What was tried: ${cut(300)}`,
      `What to do: ${cut(400)}`,
      HELP,
      '',
      'log:',
      cut(200),
    ])
  })

  it('shows no half of a secret where it cuts', () => {
    const tried = `${'x'.repeat(295)}hunter2-secret`
    expect(annotation(failed({ tried }))[1]).toBe(`What was tried: ${'x'.repeat(295)}***`)
  })
})

describe('outputs and summaries that cannot be written', () => {
  it('say what is wrong with the file, and what to do', () => {
    expect(unwritableOutput('EACCES')).toMatchObject({
      code: 'E_INPUT',
      message: 'The outputs of the step cannot be written to the file that GITHUB_OUTPUT names: EACCES.',
      next: 'Repair the runner: the file has to exist and be writable.',
    })
    const { green, written, summary } = concluded({ outcome: { status: 'deployed' }, outputProblem: 'EACCES' })
    expect(green).toBe(false)
    expect(written).toHaveLength(1)
    expect(written[0]).toContain('::error title=E_INPUT%3A Bad input::The outputs of the step cannot be written')
    expect(summary).toContain('### ❌ Bad input')
  })

  it.each([
    ['an error', new Error('EROFS')],
    ['something else', 'EROFS'],
  ])('warn of %s by its message', (_, summaryFault) => {
    expect(concluded({ outcome: { status: 'deployed' }, told: agent, summaryFault })).toMatchObject({
      green: true,
      written: [
        "Deployed 'agent' in 2 min 5 s",
        '::warning title=Deploy Agent Server::The job summary could not be written: EROFS',
      ],
    })
  })

  it('tell a wait for a rate limit that has no name', () => {
    const { summary } = concluded({ outcome: { status: 'deployed' }, rateLimitWaitMs: 40_000 })
    expect(summary).toContain('Waited 40 s for the rate limit of the control plane.')
  })
})
