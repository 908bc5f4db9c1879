import { ActionFailure } from '../report/error-codes.ts'
import { clip, plainLine, plainLines } from '../report/plain.ts'
import type { Attempt } from './attempt.ts'

/** What the summary and the failure tell of a smoke test. Every text is redacted; none is escaped. */
export type SmokeReport = {
  result: 'passed' | 'failed'
  address: string
  assistant: string | undefined
  streamMode: string
  attempts: number
  /** `metadata 1, updates 2`. */
  events: string
  firstEventMs: number | undefined
  endMs: number | undefined
  /** The beginning of what the agent said. */
  said: string[]
}

const SAID_CHARACTERS = 4000
const SAID_LINES = 20

/** The beginning of a text in lines. It is redacted before it is cut: half a secret would not be known again. */
export function beginning(text: string, redact: (text: string) => string): string[] {
  if (text.trim() === '') return []
  const redacted = redact(text)
  const lines = plainLines(clip(redacted, SAID_CHARACTERS))
  return lines.length > SAID_LINES || redacted.length > SAID_CHARACTERS ? [...lines.slice(0, SAID_LINES), '…'] : lines
}

/** Untrusted words inside a sentence. */
export function quoted(text: string, max = 300): string {
  return clip(plainLine(text.replace(/\s+/g, ' ').trim()), max)
}

/** `metadata 1, updates 2`, or `none`. */
export function eventList(events: Attempt['events']): string {
  const names = [...events].map(([name, count]) => `${quoted(name, 80)} ${count}`)
  return names.length === 0 ? 'none' : names.join(', ')
}

/** The failure of a smoke test: what happened, what was sent and what came, and what to do. */
export function smokeFailure({
  happened,
  report,
  next,
  cause,
}: {
  happened: string
  report: SmokeReport
  next?: string | undefined
  cause?: unknown
}): ActionFailure {
  const { address, assistant, streamMode, attempts, events, said } = report
  const to = assistant === undefined ? 'to no assistant yet' : `to the assistant '${quoted(assistant, 80)}'`
  const sent = `smoke-test-input was sent ${to} (stream mode ${streamMode}) at ${address}, ${times(attempts)}.`
  return new ActionFailure({
    code: 'E_SMOKE_TEST',
    happened: said.length === 0 ? happened : `${happened}\nThe agent said: ${quoted(said.join(' '))}`,
    tried: `${sent} Events that came: ${events}.`,
    ...(next === undefined ? {} : { next }),
    cause,
  })
}

export function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}
