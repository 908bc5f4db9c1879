import { stripVTControlCharacters } from 'node:util'
import { LOG_LEVELS, type LogLevel } from '../../../contract/log.ts'
import type { BuildLog } from '../build-log.ts'
import type { OutputStream } from './lines.ts'

const LEVELS: Record<string, LogLevel> = {
  ...Object.fromEntries(LOG_LEVELS.map((level) => [level.toLowerCase(), level])),
  warn: 'WARNING',
  fatal: 'CRITICAL',
  http: 'INFO',
  verbose: 'DEBUG',
  silly: 'DEBUG',
}

/** The agent server logs each request; the platform's own questions tell nobody anything. */
const HEALTH_CHECK = /^(<--|-->) GET \/ok\b/

/** What the Python agent server adds to all that it says. */
const SAME_IN_EACH_LINE = new Set(['logger', 'thread_name', 'api_variant', 'langgraph_api_version'])

/** Writes a line of an agent with its own level where it is one of the agent server's JSON lines. Returns what was written. */
export function writeAgentLine(log: BuildLog, line: string, stream: OutputStream): string {
  const structured = parseLine(line)
  const level = structured?.level ?? (stream === 'stderr' ? 'WARNING' : 'INFO')
  const message = structured?.message ?? line
  if (HEALTH_CHECK.test(message)) return message
  log.write(level, message)
  return message
}

function parseLine(line: string): { level: LogLevel; message: string } | null {
  if (!line.startsWith('{')) return null
  try {
    const { timestamp, level, event, ...rest } = JSON.parse(line) as Record<string, unknown>
    if (typeof event !== 'string' || typeof level !== 'string' || typeof timestamp !== 'string') return null
    const telling = Object.fromEntries(Object.entries(rest).filter(([key]) => !SAME_IN_EACH_LINE.has(key)))
    const details = Object.keys(telling).length === 0 ? '' : ` ${JSON.stringify(telling)}`
    return { level: LEVELS[level] ?? 'INFO', message: stripVTControlCharacters(event) + details }
  } catch {
    // An agent's own line that only looks like one.
    return null
  }
}
