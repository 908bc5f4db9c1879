import type { LogLevel } from '../../../src/contract/log.ts'
import type { BuildLog } from '../../../src/platform/control-plane/build-log.ts'

export interface MemoryLog extends BuildLog {
  readonly lines: { level: LogLevel; message: string }[]
  /** All messages, one a line. */
  text(): string
}

export function memoryLog(): MemoryLog {
  const lines: { level: LogLevel; message: string }[] = []
  return {
    lines,
    write: (level, message) => void lines.push({ level, message }),
    text: () => lines.map((line) => line.message).join('\n'),
  }
}
