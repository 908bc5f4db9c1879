import { Script } from 'node:vm'

/** How long an expression may search. */
const MATCH_MS = 1000

export type Verdict = 'matches' | 'differs' | 'too-slow'

/**
 * Whether an expression is found in a text. Some expressions take longer than the universe has on some texts, so it runs under
 * the time limit of `node:vm`: the engine looks for it whenever an expression goes back to try another way. That needs no thread
 * and no second dialect of regular expressions, and holds whatever the expression is.
 */
export function matchText({ pattern, text, limitMs = MATCH_MS }: { pattern: string; text: string; limitMs?: number }): Verdict {
  try {
    const found: unknown = SEARCH.runInNewContext({ pattern, text }, { timeout: limitMs })
    return found === true ? 'matches' : 'differs'
  } catch (error) {
    // The error comes from the other context: it is no instance of this one's Error.
    if ((error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return 'too-slow'
    throw error
  }
}

const SEARCH = new Script('new RegExp(pattern).test(text)')
