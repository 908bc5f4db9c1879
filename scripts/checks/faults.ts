/** Prints the faults that a check found, one a line, and sets the exit code. */
export function report(faults: readonly string[]): void {
  for (const fault of faults) console.log(fault)
  if (faults.length > 0) process.exitCode = 1
}
