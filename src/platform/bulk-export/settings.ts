/** Limits and intervals of bulk export (specification 8.2). Milliseconds, unless the name says otherwise. */
export interface ExportSettings {
  /** Retries of an export run after its first attempt, and the fixed wait before each (divided by `--time-scale`). */
  readonly retries: number
  readonly retryDelayMs: number
  /** How long one attempt of an export run may take. */
  readonly runLimitMs: number
  /** How long an export may take from its first run's start. The specification says 72 h and 48 h; 72 h is its policy list. */
  readonly exportLimitMs: number
  /** Runs of one export at once. The specification says 45 and 5; 45 is the hosted service's own figure. */
  readonly runsAtOnce: number
  /** Exports of one workspace at once. The specification says 15 and 3; 15 is the hosted service's own figure. */
  readonly exportsAtOnce: number
  /** How long after its window's end a spawned export begins, for late runs (divided by `--time-scale`). */
  readonly lateArrivalMs: number
  /** Exports that a workspace may create in an hour, spawned ones among them, and its active schedules; null: no limit. */
  readonly creationsAnHour: number | null
  readonly schedulesMax: number | null
  /** Unfinished exports of one schedule beyond which catching up waits. */
  readonly spawnedUnfinishedMax: number
  /** Workers lost in a row without a checkpoint before an export run fails. */
  readonly lossesMax: number
  /** How long a worker may be silent before its run goes to another, and how often it says that it is alive. */
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** How many export runs this process works on at once. */
  readonly workers: number
  /** Bounds of one file: text before compression, and rows. */
  readonly fileTextBytes: number
  readonly fileRows: number
  /** Bounds of one row group: text before compression, and rows. */
  readonly groupTextBytes: number
  readonly groupRows: number
  /** Memory of the engine that writes Parquet, in bytes. */
  readonly memoryBytes: number
  /** A file above the first goes up in parts of the second size, in bytes. */
  readonly multipartAboveBytes: number
  readonly uploadPartBytes: number
  /** How long one request to a bucket may take, and how long a connection. */
  readonly requestLimitMs: number
  readonly connectLimitMs: number
  readonly lookMs: number
}

const MIB = 1024 * 1024

export const DEFAULT_EXPORT_SETTINGS: ExportSettings = {
  retries: 20,
  retryDelayMs: 30_000,
  runLimitMs: 4 * 3_600_000,
  exportLimitMs: 72 * 3_600_000,
  runsAtOnce: 45,
  exportsAtOnce: 15,
  lateArrivalMs: 10 * 60_000,
  creationsAnHour: null,
  schedulesMax: null,
  spawnedUnfinishedMax: 100,
  lossesMax: 20,
  leaseMs: 30_000,
  heartbeatMs: 5000,
  workers: 2,
  fileTextBytes: 128 * MIB,
  fileRows: 200_000,
  groupTextBytes: 12 * MIB,
  groupRows: 20_000,
  memoryBytes: 256 * MIB,
  multipartAboveBytes: 16 * MIB,
  uploadPartBytes: 8 * MIB,
  requestLimitMs: 60_000,
  connectLimitMs: 5000,
  lookMs: 1000,
}

/** The two limits of the hosted service that self-hosted installations do not have. */
export const CLOUD_EXPORT_LIMITS = { creationsAnHour: 250, schedulesMax: 200 } as const satisfies Partial<ExportSettings>

interface Variable {
  readonly setting: keyof ExportSettings
  /** How much one of the variable's units is in the setting's. */
  readonly unit: number
  readonly min: number
  readonly max: number
}

/** The limits of specification 8.2 as an operator sets them. Whole numbers. */
export const EXPORT_VARIABLES = {
  PLATFORM_EXPORT_RETRIES: { setting: 'retries', unit: 1, min: 0, max: 1000 },
  PLATFORM_EXPORT_RETRY_DELAY_SECONDS: { setting: 'retryDelayMs', unit: 1000, min: 0, max: 86_400 },
  PLATFORM_EXPORT_RUN_LIMIT_MINUTES: { setting: 'runLimitMs', unit: 60_000, min: 1, max: 10_080 },
  PLATFORM_EXPORT_LIMIT_HOURS: { setting: 'exportLimitMs', unit: 3_600_000, min: 1, max: 8760 },
  PLATFORM_EXPORT_RUNS_AT_ONCE: { setting: 'runsAtOnce', unit: 1, min: 1, max: 1000 },
  PLATFORM_EXPORTS_AT_ONCE: { setting: 'exportsAtOnce', unit: 1, min: 1, max: 1000 },
  PLATFORM_EXPORT_LATE_ARRIVAL_SECONDS: { setting: 'lateArrivalMs', unit: 1000, min: 0, max: 86_400 },
  PLATFORM_EXPORT_WORKERS: { setting: 'workers', unit: 1, min: 1, max: 64 },
} as const satisfies Readonly<Record<string, Variable>>

/**
 * The settings that the environment changes; what is empty or absent stays as it is.
 * @throws {Error} that names the variable, its value and what is accepted.
 */
export function readExportSettings(environment: Readonly<Record<string, string | undefined>>): Partial<ExportSettings> {
  const changed = Object.entries(EXPORT_VARIABLES).flatMap(([name, { setting, unit, min, max }]) => {
    const given = environment[name]?.trim() ?? ''
    if (given === '') return []
    const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN
    if (value >= min && value <= max) return [[setting, value * unit] as const]
    throw new Error(`${name} is '${given}': it takes a whole number from ${min} to ${max}`)
  })
  return Object.fromEntries(changed)
}
