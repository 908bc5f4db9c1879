import { type Logger, pino } from 'pino'

export type Log = Logger

/** The platform's own log: one JSON object a line on standard error. Standard output is kept for `--json`. */
export function createLog(level: string): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true }))
}
