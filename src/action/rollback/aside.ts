import type { Deps } from '../deps.ts'
import type { Journal, LogTail } from '../journal.ts'
import type { OutputName } from '../registry.ts'
import type { Transition } from '../report/gantt.ts'
import type { SmokeReport } from '../smoke/report.ts'

/** What a rollback learns; kept apart, so that nothing of the failure that came before is overwritten. */
export type Aside = {
  deps: Deps
  transitions: readonly Transition[]
  output: (name: OutputName) => string | undefined
  smokeTest: () => SmokeReport | undefined
  logTail: () => LogTail | undefined
  /** Remembers that the control plane is about to be asked for a revision. */
  ask: () => void
  asked: () => boolean
  /** Takes the outputs over: they are those of the revision that serves now. */
  commit: () => void
}

/** The step's effects for a rollback: its log says whose lines these are, its outputs and observations wait. */
export function setAside(deps: Deps): Aside {
  const outputs = new Map<OutputName, string>()
  const transitions: Transition[] = []
  let smokeTest: SmokeReport | undefined
  let logTail: LogTail | undefined
  let asked = false
  const { journal, log } = deps
  const aside: Journal = {
    ...journal,
    transitions,
    output: (name) => outputs.get(name) ?? journal.output(name),
    set: (name, value) => {
      if (value !== null && value !== undefined && value !== '') outputs.set(name, value)
    },
    transition: (status, at) => {
      if (transitions.at(-1)?.status !== status) transitions.push({ status, at })
    },
    setLogTail: (tail) => {
      logTail = tail
    },
    setSmokeTest: (report) => {
      smokeTest = report
    },
  }
  return {
    deps: {
      ...deps,
      journal: aside,
      log: {
        ...log,
        info: (line) => log.info(`Rollback: ${line}`),
        warning: (line) => log.warning(`Rollback: ${line}`),
        group: (title, lines) => log.group(`Rollback: ${title}`, lines),
      },
    },
    transitions,
    output: (name) => outputs.get(name),
    smokeTest: () => smokeTest,
    logTail: () => logTail,
    ask: () => {
      asked = true
    },
    asked: () => asked,
    commit: () => {
      for (const [name, value] of outputs) journal.set(name, value)
    },
  }
}
