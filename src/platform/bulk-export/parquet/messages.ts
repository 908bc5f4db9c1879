import type { Compression, FormatVersion } from '../../../contract/bulk-export.ts'
import type { ExportableField } from '../../../contract/exportable-fields.ts'

/** Place of a run in the order of an export. The time is ISO 8601 with microseconds. */
export interface Place {
  readonly time: string
  readonly id: string
}

/** Everything that the writer process needs to know of an export run. All SQL is complete, with its values written into it. */
export interface WriterSetup {
  readonly databaseUrl: string
  readonly statementLimitMs: number
  readonly directory: string
  readonly fields: readonly ExportableField[]
  /** What each of the fields is, in the same order. */
  readonly columns: readonly string[]
  /** Those of the fields that are plain text in every format, and may be long. */
  readonly textFields: readonly ExportableField[]
  /** Bytes of a row's text. */
  readonly weight: string
  /** Which rows `r` of `runs` belong to the export run; and which would, had they come in time. */
  readonly among: string
  readonly late: string
  readonly formatVersion: FormatVersion
  readonly compression: Compression
  readonly fileTextBytes: number
  readonly fileRows: number
  readonly groupTextBytes: number
  readonly groupRows: number
  readonly memoryBytes: number
}

export interface PartRequest {
  /** The part begins behind this place; null: at the window's start. */
  readonly after: Place | null
  /** It ends with this place; null: where it is large enough. */
  readonly upTo: Place | null
  readonly file: string
}

/** A file that was written. `bytes` is its size; a part without rows has no file. */
export interface WrittenPart {
  readonly last: Place
  readonly rows: number
  readonly bytes: number
  readonly textBytes: number
  /** What it took, by what it was spent on. */
  readonly seconds: Readonly<Record<'planning' | 'copying' | 'converting', number>>
}

/** Rows of the store: those of the export run that are there now, and those that came after it had begun. */
export interface RowCounts {
  readonly present: number
  readonly late: number
}

export type WriterRequest =
  | { readonly kind: 'setup'; readonly setup: WriterSetup }
  | { readonly kind: 'part'; readonly id: number; readonly part: PartRequest }
  | { readonly kind: 'count'; readonly id: number }

export type WriterAnswer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string; readonly code: string | null }
