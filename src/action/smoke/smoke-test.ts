import type { AgentServer } from '../../client/agent-server.ts'
import { startDeadline } from '../../client/deadline.ts'
import { RequestFailure } from '../../client/failure.ts'
import type { StreamMode } from '../../contract/run-stream.ts'
import type { Deps } from '../deps.ts'
import { formatDuration } from '../parse/duration.ts'
import { ActionFailure } from '../report/error-codes.ts'
import { agentAddress } from './address.ts'
import { firstGraph, firstListed } from './assistant.ts'
import { type Attempt, attemptRun, isUnknownAssistant, isWarmingUp, notBegun } from './attempt.ts'
import { judge, type Problem } from './judge.ts'
import { beginning, eventList, quoted, type SmokeReport, smokeFailure } from './report.ts'

/** What the workflow wants of the agent. */
export type SmokeTest = {
  input: Readonly<Record<string, unknown>>
  assistant?: string
  /** Where the checkout may have the graph configuration; absent when the checkout is not what was deployed. */
  configPath?: string
  streamMode: StreamMode
  /** A regular expression that can be compiled. */
  expect?: string
  timeoutMs: number
}

/** What the smoke test needs of the step. */
export type SmokeDeps = Pick<Deps, 'effects' | 'log' | 'journal' | 'signal' | 'agentServer' | 'checkout' | 'redact'>

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5000
/** With less time than this another attempt would only show that the time is over. */
const LEAST_LEFT_MS = 500
/** A revision that is being replaced may answer for so long, without an assistant that only the new one has. */
const OLD_REVISION_MS = 10_000
/** The log does not say the same again before so much time has passed. */
const SILENCE_MS = 60_000

/**
 * Proves that the deployed agent answers: streams a run, again and again while the new revision warms up, and
 * judges the first answer. Throws `E_SMOKE_TEST` unless that is right, and `E_CANCELLED`.
 */
export async function smokeTest({ test, deps }: { test: SmokeTest; deps: SmokeDeps }): Promise<void> {
  const { journal, log, effects, signal } = deps
  const deadline = startDeadline({ timeoutMs: test.timeoutMs, parent: signal, effects })
  try {
    const { url, warning } = agentAddress(journal.output('deployment-url'))
    if (warning !== undefined) log.warning(warning)
    log.info(`Smoke test: streaming a run (${test.streamMode}) at ${url}, ${formatDuration(test.timeoutMs)} at most.`)
    const report = await untilAnswer({ test, url, deps, signal: deadline.signal, remainingMs: deadline.remainingMs })
    journal.set('smoke-test', 'passed')
    const { events, firstEventMs = 0, endMs = 0, said } = report
    log.group('Smoke test: what the agent said', said)
    log.info(`The smoke test passed: first event after ${firstEventMs} ms, end after ${endMs} ms (${events}).`)
  } catch (error) {
    if (signal.aborted) {
      const happened = 'The step was cancelled during the smoke test.'
      throw new ActionFailure({ code: 'E_CANCELLED', happened, cause: error })
    }
    journal.set('smoke-test', 'failed')
    throw error
  } finally {
    deadline.stop()
  }
}

type Loop = { test: SmokeTest; url: string; deps: SmokeDeps; signal: AbortSignal; remainingMs: () => number }

/** Asks until something has answered for the agent. Returns the report of a right answer, throws that of any other. */
async function untilAnswer({ test, url, deps, signal, remainingMs }: Loop): Promise<SmokeReport> {
  const { effects, journal, log } = deps
  const agent = deps.agentServer(url)
  let assistant = knownAssistant(test, deps)
  const tell = tellWaiting(deps, test.timeoutMs)
  let before: RequestFailure | undefined
  let missingSince: number | undefined
  let unknownSince: number | undefined
  for (let attempts = 1; ; attempts += 1) {
    const chosen = assistant ?? (await listedAssistant({ agent, signal, log }))
    if (typeof chosen === 'string') assistant = chosen
    const { input, streamMode } = test
    const attempt =
      typeof chosen === 'string' ? await attemptRun({ agent, assistant: chosen, input, streamMode, signal, effects }) : chosen
    deps.signal.throwIfAborted()
    const { failure } = attempt
    const now = effects.now()
    // Only the words of the server itself end the wait: any other 404 may be that of what stands before it.
    const isMissing = failure?.kind === 'http' && failure.status === 404
    const isUnknown = failure !== undefined && isUnknownAssistant(failure)
    if (isMissing) missingSince ??= now
    if (isUnknown) unknownSince ??= now
    const leftMs = isUnknown ? Math.min(remainingMs(), patienceMs(unknownSince, now)) : remainingMs()
    const waitMs = Math.max(failure?.retryAfterMs ?? 0, Math.min(backoff(attempts, effects.random()), leftMs / 2))
    const isOver = failure === undefined || !isWarmingUp(attempt) || waitMs >= leftMs || leftMs < LEAST_LEFT_MS
    const mayBeWrong = isMissing && (patienceMs(missingSince, now) <= 0 || (isUnknown && isOver))
    const others = mayBeWrong && typeof chosen === 'string' ? await othersThan(chosen, { agent, signal }) : undefined
    deps.signal.throwIfAborted()
    const goesOn = !isOver && others === undefined && (await waited(failure, waitMs))
    if (!goesOn) {
      const problem = judge({ attempt, expect: test.expect, timeoutMs: test.timeoutMs, before, others })
      const report = reportOf({ test, url, assistant, attempts, attempt, problem, deps })
      journal.setSmokeTest(report)
      if (attempt.firstEventMs !== undefined) journal.set('smoke-test-first-event-ms', String(attempt.firstEventMs))
      if (problem === undefined) return report
      throw smokeFailure({ ...problem, happened: deps.redact(problem.happened), report, cause: failure })
    }
    before = failure
  }

  /** Waits before the next attempt. False when the time was over first; throws when the step is cancelled. */
  async function waited(failure: RequestFailure, ms: number): Promise<boolean> {
    tell(failure)
    try {
      await effects.sleep(ms, signal)
      return true
    } catch (error) {
      deps.signal.throwIfAborted()
      if (signal.aborted) return false
      throw error
    }
  }
}

/** How long a revision that may still be the old one is asked on, from the moment on which it first looked like that. */
function patienceMs(since: number | undefined, now: number): number {
  return since === undefined ? Infinity : since + OLD_REVISION_MS - now
}

/** Says why the agent is not there yet: when the reason is a new one, and otherwise once a minute that it still is not. */
function tellWaiting({ effects, log }: SmokeDeps, timeoutMs: number): (failure: RequestFailure) => void {
  const start = effects.now()
  let said: string | undefined
  let saidAt = start
  return ({ message }) => {
    const reason = quoted(message, 200).replace(/[.;:,\s]+$/, '')
    const now = effects.now()
    if (reason !== said)
      log.info(`The agent is not there yet: ${reason}. Asking again until ${formatDuration(timeoutMs)} are over.`)
    else if (now - saidAt >= SILENCE_MS) log.info(`The agent is still not there after ${formatDuration(now - start)}.`)
    else return
    said = reason
    saidAt = now
  }
}

/** The graphs that the server has, where it lists them and the assistant is not among them. */
async function othersThan(
  assistant: string,
  { agent, signal }: { agent: AgentServer; signal: AbortSignal },
): Promise<string[] | undefined> {
  try {
    const listed = await agent.searchAssistants(signal)
    const isListed = listed.some(({ assistant_id: id, graph_id: graph }) => graph === assistant || id === assistant)
    // A server that lists nothing may still be about to.
    return isListed || listed.length === 0 ? undefined : [...new Set(listed.map(({ graph_id: graph }) => graph))]
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    return undefined
  }
}

/** The assistant that the workflow or the checkout names. */
function knownAssistant({ assistant, configPath }: SmokeTest, { checkout, log }: SmokeDeps): string | undefined {
  if (assistant !== undefined || configPath === undefined) return assistant
  const config = checkout(configPath)
  const graph = config === undefined ? undefined : firstGraph(config)
  if (graph !== undefined) log.info(`The assistant is '${quoted(graph, 80)}', the first graph of ${configPath} in the checkout.`)
  return graph
}

/** The first assistant of the agent server's own list, or the attempt that ended without one. */
async function listedAssistant({
  agent,
  signal,
  log,
}: {
  agent: AgentServer
  signal: AbortSignal
  log: SmokeDeps['log']
}): Promise<string | Attempt> {
  try {
    const listed = firstListed(await agent.searchAssistants(signal))
    if (listed === undefined) return { ...notBegun(), error: 'the agent server lists no assistant' }
    const { graph, others } = listed
    const which = others === 0 ? 'the one graph' : `the first of ${others + 1} graphs`
    log.info(`The assistant is '${quoted(graph, 80)}', ${which} of the agent server.`)
    return graph
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    return { ...notBegun(), failure: error }
  }
}

function reportOf({
  test,
  url,
  assistant,
  attempts,
  attempt,
  problem,
  deps,
}: {
  test: SmokeTest
  url: string
  assistant: string | undefined
  attempts: number
  attempt: Attempt
  problem: Problem | undefined
  deps: SmokeDeps
}): SmokeReport {
  return {
    result: problem === undefined ? 'passed' : 'failed',
    address: url,
    assistant,
    streamMode: test.streamMode,
    attempts,
    events: deps.redact(eventList(attempt.events)),
    firstEventMs: attempt.firstEventMs,
    endMs: attempt.endMs,
    said: beginning(attempt.text, deps.redact),
  }
}

/** Doubles from attempt to attempt; half of it is chance, so that steps that wait for the same thing do not ask in step. */
function backoff(attempts: number, random: number): number {
  const full = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1))
  return Math.round(full * (0.5 + random / 2))
}
