import type { ExportReport } from './export/report.ts'
import type { Io } from './io.ts'
import type { SweptPreview } from './preview/report.ts'
import type { OutputName, StateKey } from './registry.ts'
import type { Transition } from './report/gantt.ts'
import type { RollbackReport } from './rollback/section.ts'
import type { SmokeReport } from './smoke/report.ts'

/** One field in which what is live and what is wanted differ. Both are texts for people; no secret is among them. */
export type Change = { field: string; live: string; wanted: string }

/** The end of a revision's log. */
export type LogTail = { title: string; lines: string[] }

/**
 * What the step knows, as it learns it. Outputs and state reach the runner at once, so that they are there even when the step is
 * killed; the conclusion and the job summary are made from the rest.
 */
export type Journal = {
  readonly startedAt: number
  readonly transitions: readonly Transition[]
  /** Sentences for the summary: waits, doubts, what was done about the remote revision. */
  readonly notes: readonly string[]
  readonly plan: readonly Change[] | undefined
  readonly logTail: LogTail | undefined
  readonly smokeTest: SmokeReport | undefined
  readonly export: ExportReport | undefined
  readonly sweep: readonly SweptPreview[] | undefined
  readonly rollback: RollbackReport | undefined
  output: (name: OutputName) => string | undefined
  /** Sets an output, unless the value is not known or is the one that was set last. */
  set: (name: OutputName, value: string | null | undefined) => void
  /** Leaves something for post. */
  save: (key: StateKey, value: string) => void
  transition: (status: string, at: number) => void
  note: (sentence: string) => void
  setPlan: (changes: readonly Change[]) => void
  setLogTail: (tail: LogTail) => void
  setSmokeTest: (report: SmokeReport) => void
  setExport: (report: ExportReport) => void
  setSweep: (previews: readonly SweptPreview[]) => void
  setRollback: (report: RollbackReport) => void
  addRateLimitWait: (milliseconds: number) => void
  rateLimitWaitMs: () => number
}

export function createJournal({ io, startedAt }: { io: Pick<Io, 'setOutput' | 'saveState'>; startedAt: number }): Journal {
  const outputs = new Map<OutputName, string>()
  const transitions: Transition[] = []
  const notes: string[] = []
  let plan: readonly Change[] | undefined
  let logTail: LogTail | undefined
  let smokeTest: SmokeReport | undefined
  let exported: ExportReport | undefined
  let swept: readonly SweptPreview[] | undefined
  let rollback: RollbackReport | undefined
  let rateLimitWaitMs = 0
  return {
    startedAt,
    transitions,
    notes,
    get plan() {
      return plan
    },
    get logTail() {
      return logTail
    },
    get smokeTest() {
      return smokeTest
    },
    get export() {
      return exported
    },
    get sweep() {
      return swept
    },
    get rollback() {
      return rollback
    },
    output: (name) => outputs.get(name),
    set: (name, value) => {
      if (value === null || value === undefined || value === '' || outputs.get(name) === value) return
      outputs.set(name, value)
      io.setOutput(name, value)
    },
    // A state file that has become unwritable is no reason to stop a deployment: post will have less to go on.
    save: (key, value) => void io.saveState(key, value),
    transition: (status, at) => {
      if (transitions.at(-1)?.status !== status) transitions.push({ status, at })
    },
    note: (sentence) => {
      if (!notes.includes(sentence)) notes.push(sentence)
    },
    setPlan: (changes) => {
      plan = changes
    },
    setLogTail: (tail) => {
      logTail = tail
    },
    setSmokeTest: (report) => {
      smokeTest = report
    },
    setExport: (report) => {
      exported = report
    },
    setSweep: (previews) => {
      swept = previews
    },
    setRollback: (report) => {
      rollback = report
    },
    addRateLimitWait: (milliseconds) => {
      rateLimitWaitMs += milliseconds
    },
    rateLimitWaitMs: () => rateLimitWaitMs,
  }
}
