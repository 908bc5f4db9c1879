/** A half-open range of time; both ends are ISO 8601 with microseconds. */
export interface Window {
  readonly start: string
  readonly end: string
}

const DAY_MS = 86_400_000

/** Cuts a range at every UTC midnight: the pieces tile it exactly, one for each day (specification 2.8). */
export function cutIntoDays({ start, end }: Window): Window[] {
  const windows: Window[] = []
  let from = start
  while (from < end) {
    const midnight = new Date((Math.floor(Date.parse(from) / DAY_MS) + 1) * DAY_MS).toISOString().replace('000Z', '000000Z')
    const to = midnight < end ? midnight : end
    windows.push({ start: from, end: to })
    from = to
  }
  return windows
}

/** The window of one slot of a schedule: `start + n · interval` (specification 4.3). `start` has microseconds, and they stay. */
export function windowOfSlot({ start, intervalHours, slot }: { start: string; intervalHours: number; slot: number }): Window {
  const shift = (hours: number) => new Date(Date.parse(start) + hours * 3_600_000).toISOString().slice(0, 19) + start.slice(19)
  return { start: shift(slot * intervalHours), end: shift((slot + 1) * intervalHours) }
}
