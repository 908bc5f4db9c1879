import type { LogLevel } from '../../contract/log.ts'

/**
 * Where a build or an agent process writes its lines. The implementation bounds rate and size and removes secrets;
 * a writer here cuts lines at `LINE_MAX` and never waits for the log.
 */
export interface BuildLog {
  write(level: LogLevel, message: string): void
}
