import type { StepResult } from './run-step.ts'
import { BuildFailure } from './source.ts'

/** The words of git, npm, pip and Node for a disk without room. */
const WORDS = /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/

export function isDiskFull(result: StepResult): boolean {
  return result.tail.some((line) => WORDS.test(line))
}

/** Told apart from the faults of a repository: another build may succeed as soon as there is room. */
export function diskFull(): BuildFailure {
  return new BuildFailure("The disk of the platform's machine is full: its operator has to make room before anything can be built.")
}

export function isDiskFullError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code
  return code === 'ENOSPC' || code === 'EDQUOT'
}
