import type { BuildLog } from '../build-log.ts'
import type { BuiltAgent } from '../sources/build.ts'

/** How a process ended: its exit code, or the signal that killed it. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
}

/** One agent server that runs and answers. */
export interface AgentProcess {
  /** Names this start of the revision; a restart has another one. */
  readonly id: string
  readonly address: { readonly host: string; readonly port: number }
  readonly pid: number
  /** Tells a reused process number from this process (`process-identity.ts`). */
  readonly processStartedAt: string
  /** Settles when the process has ended, for whatever reason. Never rejects. */
  readonly exited: Promise<ProcessExit>
  /** Lets runs in flight finish for `graceMs`, then kills the whole process tree. Resolves when all of it is gone. Idempotent. */
  stop(options: { graceMs: number }): Promise<void>
}

export interface StartRequest {
  readonly revisionId: string
  readonly agent: BuiltAgent
  /** The deployment's secrets and what the platform sets; wins over the configuration file's `env`. */
  readonly env: Readonly<Record<string, string>>
}

export interface StartEffects {
  readonly log: BuildLog
  readonly signal: AbortSignal
  /** Until `GET /ok` must have answered. */
  readonly timeoutMs: number
}

/** Where agents run. */
export interface Runtime {
  /**
   * Resolves when the agent answers `GET /ok`; nothing is left running otherwise.
   * @throws {StartFailure} when it ends or stays silent.
   */
  start(request: StartRequest, effects: StartEffects): Promise<AgentProcess>
  /** Kills an agent that an earlier platform left behind. False when that process is gone or the number belongs to another one. */
  killStray(identity: { pid: number; processStartedAt: string }): Promise<boolean>
}

/** The agent did not come up. `output` is the end of what it printed. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure'
  readonly output: readonly string[]

  constructor(message: string, output: readonly string[] = []) {
    super(message)
    this.output = output
  }
}
