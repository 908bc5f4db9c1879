import { availableParallelism } from 'node:os'

/** Limits and intervals of the service that are no options of the command line. Milliseconds, unless the name says otherwise. */
export interface Settings {
  readonly buildLimitMs: number
  readonly startLimitMs: number
  /** How long a revision may wait for a free worker. */
  readonly waitLimitMs: number
  /** How long the turn of a revision may last in all, with every wait and every time that it was taken up again. */
  readonly totalLimitMs: number
  /** How many builds and starts run at once in this process. */
  readonly builds: number
  readonly starts: number
  /** How long streams of a replaced revision may go on. */
  readonly drainLimitMs: number
  /** How long requests in flight may go on when the platform stops, or their deployment is deleted. */
  readonly stopLimitMs: number
  /** How often a duty looks by itself; announcements wake it earlier. */
  readonly lookMs: number
  readonly sweepMs: number
  /** How many deployed revisions of a deployment keep what was built, besides what runs; how many revisions keep their logs. */
  readonly buildsKept: number
  readonly logsKept: number
  /** The package managers' caches together are emptied above this size, in bytes. */
  readonly cacheMaxBytes: number
  /** How often the branch of a deployment with `build_on_push` is looked at (divided by `--time-scale`), and how many at once. */
  readonly pushLookMs: number
  readonly pushLooks: number
}

export const DEFAULT_SETTINGS: Settings = {
  buildLimitMs: 30 * 60_000,
  startLimitMs: 5 * 60_000,
  waitLimitMs: 2 * 60 * 60_000,
  totalLimitMs: 24 * 60 * 60_000,
  builds: Math.max(1, Math.min(4, availableParallelism() - 1)),
  starts: 2,
  drainLimitMs: 15 * 60_000,
  stopLimitMs: 10_000,
  lookMs: 1000,
  sweepMs: 10 * 60_000,
  buildsKept: 3,
  logsKept: 50,
  cacheMaxBytes: 10 * 1024 ** 3,
  pushLookMs: 30_000,
  pushLooks: 4,
}
