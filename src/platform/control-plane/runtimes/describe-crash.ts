import { inspect } from 'node:util'

/** A graph's file could not be loaded; the cause is the agent's own error. */
export class Unloadable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
  }
}

/**
 * What an agent's log shows of an error at its start: all of it but the frames of Node and of the `launcher`, which are the
 * platform's business and push the agent's own up.
 */
export function describeCrash(error: unknown, launcher: string): string {
  // The sentence about the file is told apart.
  const own = error instanceof Unloadable && error.cause !== undefined ? error.cause : error
  trim(own, launcher, new Set())
  const text = inspect(own)
  // Without any frame it is shown in brackets.
  const bare = own instanceof Error ? `[${own.stack ?? ''}]` : null
  return bare !== null && text.startsWith(bare) ? bare.slice(1, -1) + text.slice(bare.length) : text
}

function trim(error: unknown, launcher: string, seen: Set<unknown>): void {
  if (!(error instanceof Error) || seen.has(error)) return
  seen.add(error)
  const { stack, message } = error
  if (typeof stack === 'string') {
    // A message may quote frames of its own; an agent may throw an error that has none.
    const at = typeof message === 'string' ? stack.indexOf(message) : -1
    const end = at === -1 ? 0 : at + message.length
    const isOurs = (line: string) => /[ (]node:(internal\/|diagnostics_channel:)/.test(line) || line.includes(launcher)
    const isForeign = (line: string) => /^ {4}at /.test(line) && isOurs(line)
    const frames = stack.slice(end).split('\n').filter((line) => !isForeign(line))
    try {
      error.stack = stack.slice(0, end) + frames.join('\n')
    } catch {
      // It has a stack of its own making: shown as it is.
    }
  }
  trim(error.cause, launcher, seen)
  if (error instanceof AggregateError && Array.isArray(error.errors)) for (const one of error.errors) trim(one, launcher, seen)
}
