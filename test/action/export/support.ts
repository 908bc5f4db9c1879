import { vi } from 'vitest'
import type { ExportPolicy } from '../../../src/action/export/deps.ts'
import { exportTraces } from '../../../src/action/export/export.ts'
import type { ExportWish } from '../../../src/action/export/wish.ts'
import { ActionFailure } from '../../../src/action/report/error-codes.ts'
import type { BulkExports } from '../../../src/client/bulk-export.ts'
import {
  type DestinationAnswer,
  destinationAnswerSchema,
  type ExportAnswer,
  exportAnswerSchema,
  type ExportRunAnswer,
  exportRunAnswerSchema,
} from '../../../src/client/bulk-export-answers.ts'
import { fakeDeps, type TestDeps } from '../support/deps.ts'

/** A signal that never aborts. */
export const NEVER = new AbortController().signal

/** The last day before the time of the tests, to a destination by its id. */
export const WISH: ExportWish = {
  apiUrl: 'https://api.example.com',
  projectId: 's',
  destination: { id: 'd' },
  start: { beforeMs: 86_400_000 },
  end: { beforeMs: 0 },
  wait: true,
  timeoutMs: 600_000,
}
const { end: _, ...OPEN } = WISH
/** The same once a day, without an end. */
export const SCHEDULE: ExportWish = { ...OPEN, intervalHours: 24 }
/** A destination by its bucket. */
export const BUCKET = { config: { bucket_name: 'lake', prefix: 'a/b', region: 'eu-central-1' } }
export const POLICY = { dryRun: false, onCancel: 'leave', onTimeout: 'leave' } as const

export function destinationAnswer(changes: Record<string, unknown> = {}): DestinationAnswer {
  return destinationAnswerSchema.parse({
    id: 'd',
    display_name: 'lake',
    config: { bucket_name: 'lake', prefix: 'a' },
    ...changes,
  })
}

export function exportAnswer(status: string, changes: Record<string, unknown> = {}): ExportAnswer {
  return exportAnswerSchema.parse({ id: 'e', status, ...changes })
}

/** A run of 31 December with 5 rows in one file. */
export function runAnswer(status: string, changes: Record<string, unknown> = {}): ExportRunAnswer {
  const metadata = { result: { exported_files: ['a.parquet'] } }
  return exportRunAnswerSchema.parse({
    id: 'r',
    status,
    rows_exported: 5,
    start_time: '2025-12-31T00:00:00Z',
    metadata,
    ...changes,
  })
}

/** A service on which everything goes well, unless a test says otherwise. */
export function fakeBulkExports(changes: Partial<BulkExports> = {}): BulkExports {
  return {
    listDestinations: vi.fn(async () => []),
    getDestination: vi.fn(async () => destinationAnswer()),
    createDestination: vi.fn(async () => destinationAnswer()),
    updateCredentials: vi.fn(async () => undefined),
    listExports: vi.fn(async () => []),
    getExport: vi.fn(async () => exportAnswer('Completed')),
    listRuns: vi.fn(async () => [runAnswer('Completed')]),
    createExport: vi.fn(async () => exportAnswer('Created')),
    cancelExport: vi.fn(async () => exportAnswer('Cancelled')),
    ...changes,
  }
}

/** The effects of a step that talks to this service. */
export function exportDeps(api: BulkExports, onSleep?: (now: number) => void): TestDeps {
  return { ...fakeDeps({}, onSleep), bulkExports: () => ({ api, once: api }) }
}

/** What an export came to: its status, or the failure that it ended with. */
export type Ended = { status?: string; failure?: ActionFailure; api: BulkExports; deps: TestDeps }

type Scene = { policy?: Partial<ExportPolicy>; api?: Partial<BulkExports> }

/** Exports exactly what is wished. */
export async function exportWish(
  wish: ExportWish,
  { policy = {}, api = {} }: Scene = {},
  onSleep?: (deps: TestDeps) => void,
): Promise<Ended> {
  const fake = fakeBulkExports(api)
  const deps: TestDeps = exportDeps(fake, () => onSleep?.(deps))
  try {
    return { status: await exportTraces({ wish, policy: { ...POLICY, ...policy }, deps }), api: fake, deps }
  } catch (error) {
    if (!(error instanceof ActionFailure)) throw error
    return { failure: error, api: fake, deps }
  }
}

/** Exports what `WISH` says, unless a test says otherwise. */
export async function exportStep(
  { wish = {}, ...scene }: Scene & { wish?: Partial<ExportWish> } = {},
  onSleep?: (deps: TestDeps) => void,
): Promise<Ended> {
  return await exportWish({ ...WISH, ...wish }, scene, onSleep)
}
