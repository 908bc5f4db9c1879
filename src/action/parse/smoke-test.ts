import type { Parsed } from './parsed.ts'

export const SMOKE_INPUT_RULE = 'a JSON object, such as {"messages": [{"role": "user", "content": "ping"}]}'
export const ASSISTANT_RULE = "a graph's name or an assistant's UUID, 255 characters at most, on one line"
export const EXPECT_RULE =
  'a JavaScript regular expression without slashes around it, 2000 characters at most; (?i:…) ignores case'

const EXPECT_MAX = 2000

/** Reads `smoke-test-input`. Problems never quote it: it may hold what a user said. */
export function parseSmokeInput(text: string): Parsed<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // The parser's message quotes the text; of it only the place is told.
    const place = / at position \d+( \(line \d+ column \d+\))?/.exec(error instanceof Error ? error.message : '')
    return { problem: `is not JSON${place === null ? '' : `${place[0]}`}` }
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value: value as Record<string, unknown> }
  return { problem: `is JSON, but ${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`}` }
}

export function parseAssistant(text: string): Parsed<string> {
  return text.length <= 255 && !/[\x00-\x1f\x7f]/.test(text) ? { value: text } : { problem: 'is no name of an assistant' }
}

/** Reads `smoke-test-expect`; the value is the expression's text, so that it can run under a time limit. */
export function parseExpect(text: string): Parsed<string> {
  if (text.length > EXPECT_MAX) return { problem: `is ${text.length} characters long` }
  try {
    void new RegExp(text)
    return { value: text }
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^.*: /s, '') : 'it cannot be read'
    return { problem: `is not a regular expression (${reason})` }
  }
}
