import type { Deps } from '../deps.ts'
import type { StepInputs } from '../inputs.ts'
import type { ExportReport } from './report.ts'

/** What an export needs of the step. */
export type ExportDeps = Pick<Deps, 'bulkExports' | 'effects' | 'journal' | 'log' | 'redact' | 'signal'>
export type ExportPolicy = Pick<StepInputs, 'dryRun' | 'onCancel' | 'onTimeout'>
/** Adds what is known by now to the report for the summary. */
export type Tell = (changes: Partial<ExportReport>) => void
