import { describe, expect, it } from 'vitest'
import { conclude } from '../../src/action/conclude.ts'
import { createJournal } from '../../src/action/journal.ts'
import type { Outcome } from '../../src/action/main.ts'
import { createRedactor } from '../../src/action/masks.ts'
import { ActionFailure, toFailure } from '../../src/action/report/error-codes.ts'
import { createLog } from '../../src/action/report/log.ts'
import { COMMIT, NEW_REVISION_ID, REPO_URL } from './support/answers.ts'
import { inputs } from './support/deps.ts'
import { githubContext } from './support/github.ts'

const buildFailed = new ActionFailure({
  code: 'E_BUILD_FAILED',
  happened: 'The revision ended in BUILD_FAILED.',
  tried: 'Nothing.',
})

function scene({ outputProblem, summaryProblem }: { outputProblem?: string; summaryProblem?: string } = {}) {
  const written: string[] = []
  const outputs: Record<string, string> = {}
  const state: Record<string, string> = {}
  let summary = ''
  const io = {
    readInputs: () => ({}) as never,
    getState: () => '',
    outputProblem: () => outputProblem,
    setOutput: (name: string, value: string) => {
      outputs[name] = value
    },
    saveState: (key: string, value: string) => {
      state[key] = value
      return true
    },
    writeSummary: (markdown: string) => {
      if (summaryProblem !== undefined) throw new Error(summaryProblem)
      summary = markdown
    },
  }
  const redactor = createRedactor()
  redactor.add(['hunter2-secret'])
  const log = createLog({ write: (line) => written.push(line), redactor, token: () => 'stop' })
  const journal = createJournal({ io, startedAt: 0 })
  const end = (outcome: Outcome, summaryWanted = true) =>
    conclude({
      outcome,
      inputs: inputs(),
      summary: summaryWanted,
      journal,
      io,
      log,
      redactor,
      github: githubContext(),
      rateLimitWaitMs: 40_000,
      rateLimits: ['the control plane', 'Run lookup'],
      now: 125_000,
    })
  return {
    journal,
    end,
    outputs,
    state,
    written,
    summary: () => summary,
    errors: () => written.filter((line) => line.startsWith('::error')),
  }
}

describe('conclude', () => {
  it('is green for a step that deployed', () => {
    const { end, journal, outputs, state, written, summary, errors } = scene()
    journal.set('deployment-name', 'agent')
    journal.set('deployment-url', 'https://agent.example.com')
    expect(end({ status: 'deployed' })).toBe(true)
    expect(outputs).toEqual({ 'deployment-name': 'agent', 'deployment-url': 'https://agent.example.com', status: 'deployed' })
    expect(state).toEqual({ done: 'true' })
    expect(written).toEqual(["Deployed 'agent' in 2 min 5 s: https://agent.example.com"])
    expect(errors()).toEqual([])
    expect(summary()).toContain('### ✅ Deployed: agent')
    expect(summary()).toContain('Waited 40 s for the rate limit of the control plane, Run lookup.')
  })

  it('is red for a failure, with one annotation that says what happened, what was tried and what to do', () => {
    const { end, journal, outputs, errors } = scene()
    journal.setLogTail({ title: 'The end of the build log', lines: Array.from({ length: 200 }, (_, index) => `line ${index}`) })
    expect(end({ failure: buildFailed })).toBe(false)
    expect(outputs).toEqual({ status: 'failed', 'error-code': 'E_BUILD_FAILED' })
    expect(errors()).toHaveLength(1)
    const lines = errors()[0]!.split('%0A')
    expect(lines[0]).toBe('::error title=E_BUILD_FAILED%3A Build failed::The revision ended in BUILD_FAILED.')
    expect(lines).toContain('What was tried: Nothing.')
    expect(lines).toContain('More: https://github.com/acme/deploy-agent-server#e_build_failed')
    expect(lines.slice(-11)).toEqual([
      'The end of the build log:',
      ...Array.from({ length: 10 }, (_, index) => `line ${190 + index}`),
    ])
  })

  it('shows 50 lines of the log in the summary, folded and escaped', () => {
    const { end, journal, summary } = scene()
    journal.setLogTail({
      title: 'The end of the build log',
      lines: Array.from({ length: 200 }, (_, index) => `<b>line ${index}</b></pre></details>`),
    })
    end({ failure: buildFailed })
    expect(summary()).toContain('<details><summary>The end of the build log (50 lines)</summary>')
    expect(summary()).not.toContain('line 149&lt;')
    expect(summary()).toContain('&lt;b&gt;line 150&lt;/b&gt;&lt;/pre&gt;&lt;/details&gt;')
    expect(summary().match(/<\/pre>/g)).toHaveLength(1)
  })

  it('shows what was deployed, with links', () => {
    const { end, journal, summary } = scene()
    journal.set('revision-id', NEW_REVISION_ID)
    journal.set('commit-sha', COMMIT)
    journal.transition('BUILDING', 1000)
    journal.transition('DEPLOYED', 5000)
    end({ status: 'deployed' })
    expect(summary()).toContain(`<a href="${REPO_URL}/commit/${COMMIT}"><code>c0ffee000000</code></a>`)
    expect(summary()).toContain(`| Revision | <code>${NEW_REVISION_ID}</code> |`)
    expect(summary()).toContain('```mermaid\ngantt')
  })

  it('lets no secret into the summary, whatever escaping does to it', () => {
    const { end, journal, summary, written } = scene()
    journal.note('the value was hunter2-secret')
    journal.setLogTail({ title: 'log', lines: ['KEY=hunter2-secret'] })
    end({ failure: toFailure(new Error('hunter2-secret')) })
    expect(summary() + written.join('\n')).not.toMatch(/hunter2/)
  })

  it('writes no summary when none is wanted', () => {
    const { end, summary } = scene()
    end({ status: 'deployed' }, false)
    expect(summary()).toBe('')
  })

  it('only warns when the summary cannot be written', () => {
    const { end, errors, written } = scene({ summaryProblem: 'EACCES' })
    expect(end({ status: 'deployed' })).toBe(true)
    expect(errors()).toEqual([])
    expect(written.at(-1)).toMatch(/^::warning .*EACCES/)
  })

  it('is red when the outputs cannot be written, and does not hide the real failure behind that', () => {
    const good = scene({ outputProblem: 'EACCES' })
    expect(good.end({ status: 'deployed' })).toBe(false)
    expect(good.errors()).toEqual([expect.stringContaining('E_INPUT')])
    const bad = scene({ outputProblem: 'EACCES' })
    expect(bad.end({ failure: buildFailed })).toBe(false)
    expect(bad.errors()).toEqual([expect.stringContaining('E_BUILD_FAILED')])
    expect(bad.written.join('\n')).toMatch(/::warning .*EACCES/)
  })

  it('keeps the summary below the size at which the runner drops it', () => {
    const { end, journal, summary } = scene()
    for (let index = 0; index < 1000; index++) journal.note(`${index} ${'<'.repeat(1900)}`)
    end({ status: 'deployed' })
    expect(Buffer.byteLength(summary())).toBeLessThanOrEqual(900_000)
  })
})
