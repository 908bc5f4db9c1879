/// <reference lib="esnext.disposable" />

/** Options of the platform without the dashes, as `{ 'time-scale': 100, offering: 'cloud' }`; README, "The platform". */
export type PlatformOptions = Readonly<Record<string, string | number | boolean>>

/** A fault that requests meet. docs/testing.md says what each field does. */
export interface Fault {
  method?: string | null
  path?: string | null
  times?: number
  skip?: number
  status?: number | null
  headers?: Readonly<Record<string, string>> | null
  body?: unknown
  delay_ms?: number
  broken?: 'reset' | 'truncated' | 'stalled' | 'html' | null
  handled?: boolean
}

/** A fault in the list: `left` requests will still meet it, `struck` have. */
export interface ListedFault extends Fault {
  readonly id: string
  readonly left: number
  readonly struck: number
}

export interface TestPlatform {
  /** The address: control plane, main API and agents. Without a slash at its end. */
  readonly url: string
  readonly apiKey: string
  readonly workspaceId: string
  readonly pid: number
  /** What it has logged so far: one JSON object a line. */
  output(): string
  /** Removes all faults, all counts of the rate limits, and everything in the workspace. It ends when agents have ended. */
  reset(): Promise<void>
  readonly faults: {
    add(fault: Fault): Promise<ListedFault>
    list(): Promise<ListedFault[]>
    clear(): Promise<void>
  }
  /** Ends it, and removes its data directory unless that was given. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Starts the platform in a process of its own, with `PLATFORM_FAULTS=on` and on a free port. Rejects with its log when it is not
 * ready within `readyMs` (60,000). `dataDirectory`: kept after the end; absent: a temporary one, removed at the end.
 */
export function startPlatform(settings?: {
  options?: PlatformOptions
  env?: Readonly<Record<string, string>>
  dataDirectory?: string
  readyMs?: number
}): Promise<TestPlatform>
