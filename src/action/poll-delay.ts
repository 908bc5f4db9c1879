const FIRST_MS = 1000
const NEAR_END_MS = 2000
const SLOWEST_MS = 15_000

/**
 * How long to wait before the next look at a revision. All times in milliseconds.
 *
 * Quick at first, when a revision may fail at once, then a tenth of the time that has passed, up to 15 s; and every 2 s around
 * the moment at which earlier revisions were done (`expected`), so that the step does not sleep through the end.
 */
export function nextPollDelay({ elapsed, expected }: { elapsed: number; expected: number | undefined }): number {
  const growing = Math.min(SLOWEST_MS, Math.max(FIRST_MS, elapsed / 10))
  if (expected === undefined) return growing
  const [from, to] = [expected * 0.9, expected * 1.25 + SLOWEST_MS]
  if (elapsed >= to) return growing
  if (elapsed >= from) return Math.min(growing, NEAR_END_MS)
  return Math.min(growing, Math.max(FIRST_MS, from - elapsed))
}

/** The median of how long earlier revisions took, in milliseconds; undefined when none tells. */
export function expectedDuration(
  revisions: readonly { created_at: string | null; updated_at: string | null }[],
): number | undefined {
  const durations = revisions
    .map(({ created_at, updated_at }) => Date.parse(updated_at ?? '') - Date.parse(created_at ?? ''))
    // A revision that was touched long after it was done tells nothing about how long it took.
    .filter((duration) => duration > 0 && duration < LONGEST_MS)
    .toSorted((a, b) => a - b)
  const middle = Math.floor(durations.length / 2)
  const [low, high] = [durations[middle - 1], durations[middle]]
  if (high === undefined) return undefined
  return durations.length % 2 === 1 || low === undefined ? high : (low + high) / 2
}

const LONGEST_MS = 6 * 3_600_000
