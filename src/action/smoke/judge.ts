import { formatDuration } from '../parse/duration.ts'
import type { RequestFailure } from '../../client/failure.ts'
import { type Attempt, isUnknownAssistant, isWarmingUp } from './attempt.ts'
import { matchText } from './expectation.ts'
import { eventList, quoted } from './report.ts'

/** So many assistants are named to people. */
const NAMED_MAX = 10

/** What is wrong with an answer, as sentences. */
export type Problem = { happened: string; next?: string }

type JudgeOptions = {
  attempt: Attempt
  /** A regular expression that can be compiled. */
  expect: string | undefined
  timeoutMs: number
  /** Why the attempt before this one came to nothing. */
  before: RequestFailure | undefined
  /** The graphs of a server that does not have the assistant, where it lists them; never empty. */
  others?: readonly string[] | undefined
}

/**
 * What is wrong with the last attempt; undefined when the agent has answered as it should: with one event of its own at least,
 * without an error, to the end of the stream, and as expected.
 */
export function judge({ attempt, expect, timeoutMs, before, others }: JudgeOptions): Problem | undefined {
  const { failure, error, events, agentEvents, text } = attempt
  if (failure !== undefined) return failedRequest({ attempt, failure, timeoutMs, before, others })
  if (error !== undefined) {
    return {
      happened: `The run failed with an error event: ${quoted(error)}`,
      next: 'Read the log of the agent on the control plane; the same input shows the error on any machine.',
    }
  }
  if (agentEvents === 0) {
    return {
      happened: `The run ended without a single event of the agent (events: ${eventList(events)}).`,
      next: 'Check that the graph does something for smoke-test-input, and that smoke-test-stream-mode shows it.',
    }
  }
  return expect === undefined ? undefined : unexpected(text, expect)
}

function unexpected(text: string, pattern: string): Problem | undefined {
  const shown = quoted(pattern, 200)
  switch (matchText({ pattern, text })) {
    case 'matches':
      return undefined
    case 'differs':
      return {
        happened:
          text === ''
            ? `The agent streamed no text that smoke-test-expect could match: ${shown}`
            : `What the agent said does not match smoke-test-expect: ${shown}`,
        next: 'Correct the agent, or what smoke-test-expect looks for.',
      }
    case 'too-slow':
      return {
        happened: `smoke-test-expect took too long on what the agent said: ${shown}`,
        next: 'Write smoke-test-expect without repetitions inside repetitions, such as (a+)+ or (.*)*.',
      }
  }
}

const BY_STATUS: Readonly<Record<number, string>> = {
  400: 'Check smoke-test-input against what the graph takes.',
  401: 'The agent server refuses api-key: check that the key belongs to the workspace of the deployment.',
  403: 'The agent server refuses api-key: check that the key belongs to the workspace of the deployment.',
  422: 'Check smoke-test-input against what the graph takes.',
}

function failedRequest({
  attempt,
  failure,
  timeoutMs,
  before,
  others,
}: Omit<JudgeOptions, 'expect'> & { failure: RequestFailure }): Problem {
  const limit = formatDuration(timeoutMs)
  const words = quoted(failure.message, 600)
  const slow = 'Read the log of the agent on the control plane; raise smoke-test-timeout if it is merely slow.'
  if (failure.kind === 'deadline' && attempt.events.size > 0) {
    return { happened: `The run had not ended when the ${limit} of smoke-test-timeout were over.`, next: slow }
  }
  if (failure.kind === 'deadline') {
    const last = before === undefined ? 'the agent server did not answer' : quoted(before.message, 600)
    return { happened: `No run passed within the ${limit} of smoke-test-timeout: ${last}`, next: slow }
  }
  if (others !== undefined) {
    const names = others.slice(0, NAMED_MAX).map((name) => `'${quoted(name, 80)}'`)
    const more = others.length > NAMED_MAX ? ` and ${others.length - NAMED_MAX} more` : ''
    return {
      happened: `${words}\nThe agent server does not have this assistant. It has ${names.join(', ')}${more}.`,
      next: 'Set smoke-test-assistant to one that the agent server has.',
    }
  }
  if (isUnknownAssistant(failure)) {
    return { happened: words, next: 'Set smoke-test-assistant to a graph that the configuration file names.' }
  }
  if (isWarmingUp(attempt)) return { happened: `No run passed within the ${limit} of smoke-test-timeout: ${words}`, next: slow }
  const answer = failure.detail === null && failure.excerpt !== null ? `\nThe answer began with: ${quoted(failure.excerpt)}` : ''
  const broke = attempt.events.size > 0 ? 'The stream of the run broke off: ' : ''
  return { happened: `${broke}${words}${answer}`, next: BY_STATUS[failure.status ?? 0] ?? slow }
}
