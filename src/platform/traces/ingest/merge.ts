import type { RunWrite } from './run-write.ts'

/** Everything that one request says of a run, put together: the row to be merged into the store. */
export interface RunRow extends Omit<RunWrite, 'kind'> {
  readonly posted: boolean
  readonly patched: boolean
}

/**
 * One row for each run, in the order of their ids: two requests that write the same runs then take their locks in the same order,
 * and cannot deadlock. What is said later wins, a patch wins over a post, and nothing is erased by being left out.
 */
export function mergeWrites(writes: readonly RunWrite[]): RunRow[] {
  const rows = new Map<string, RunRow>()
  for (const kind of ['post', 'patch'] as const) {
    for (const write of writes) if (write.kind === kind) rows.set(write.id, mergeWrite(rows.get(write.id), write))
  }
  return [...rows.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function mergeWrite(earlier: RunRow | undefined, { kind, ...said }: RunWrite): RunRow {
  const row = { ...said, posted: kind === 'post', patched: kind === 'patch' }
  if (earlier === undefined) return row
  const told = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
  return { ...earlier, ...told, posted: earlier.posted || row.posted, patched: earlier.patched || row.patched }
}
