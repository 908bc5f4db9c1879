import type { Redactor } from '../masks.ts'
import { annotation } from './annotations.ts'
import { clip, plainLine, safeLines } from './plain.ts'

/** The log of the step. Nothing that is written here can act as a workflow command, whoever wrote the text. */
export type Log = {
  /** One line of the action's own; what it embeds is made plain. */
  info: (line: string) => void
  /** A blue annotation. */
  notice: (message: string) => void
  /** A yellow annotation. */
  warning: (message: string) => void
  /** The red annotation: exactly one per failure, so only the conclusion calls it. */
  error: (failure: { title: string; message: string }) => void
  /** Text from elsewhere, in a collapsed group. */
  group: (title: string, lines: readonly string[]) => void
}

type LogOptions = {
  /** Writes one line to standard output. */
  write: (line: string) => void
  redactor: Redactor
  /** A token that no text can guess, made anew for each call. */
  token: () => string
}

/** Marks that the runner obeys: `::command::` at the start of a line, and `##[command]` anywhere in it. */
const COMMAND = /^\s*::|##\[/

export function createLog({ write, redactor, token }: LogOptions): Log {
  const guarded = (content: readonly string[]): void => {
    // The runner reads no commands between these two, whatever the lines say.
    const stop = token()
    write(`::stop-commands::${stop}`)
    for (const line of content) write(line)
    write(`::${stop}::`)
  }
  const lines = (text: string): string[] => safeLines(text, redactor.redact).map(plainLine)
  const safe = (text: string): string => plainLine(lines(text).join(' '))
  return {
    info: (text) => {
      const line = safe(text)
      if (COMMAND.test(line)) guarded([line])
      else write(line)
    },
    notice: (text) => write(annotation('notice', { title: 'Deploy Agent Server', message: safe(text) })),
    warning: (text) => write(annotation('warning', { title: 'Deploy Agent Server', message: safe(text) })),
    error: ({ title, message }) => write(annotation('error', { title: safe(title), message: lines(message).join('\n') })),
    group: (title, content) => {
      write(`::group::${clip(safe(title), 200).replaceAll('%', '%25')}`)
      guarded(content.flatMap(lines))
      write('::endgroup::')
    },
  }
}
