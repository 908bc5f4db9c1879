import type { ResourceSpec } from '../../../contract/resource-spec.ts'
import type { BuildLog } from '../build-log.ts'
import type { BuiltAgent } from '../sources/build.ts'

/** What fetching an image may take, before the agent is started. Milliseconds. */
export const FETCH_LIMIT_MS = 15 * 60_000

/** How an agent server ended: its exit code, or the signal that killed it. Both null: it is gone, and nobody saw how. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
}

/** One agent server that runs and answers: a process of this machine, a container, a pod. */
export interface AgentProcess {
  /** Where this machine reaches it. */
  readonly address: { readonly host: string; readonly port: number }
  /**
   * Names exactly this start of it for ever, to a later platform as well (`Runtime.endStray`). Begins with the runtime's name and a colon,
   * so that no runtime takes another's for its own.
   */
  readonly reference: string
  /** Settles when it has ended, for whatever reason. Never rejects. */
  readonly exited: Promise<ProcessExit>
  /** Lets runs in flight finish for `graceMs`, then kills all that belongs to it. Resolves when all of it is gone. Idempotent. */
  stop(options: { graceMs: number }): Promise<void>
}

/** A build of a git source that is to be started. */
export interface BuildStart {
  readonly revisionId: string
  readonly agent: BuiltAgent
  /** The deployment's secrets and what the platform sets; wins over the configuration file's `env`. */
  readonly env: Readonly<Record<string, string>>
}

/** A container image that is to be started. */
export interface ImageStart {
  /** The row in `agents` that this start has: what is started carries it as a label. */
  readonly agentId: string
  readonly deploymentId: string
  readonly deploymentName: string
  readonly revisionId: string
  readonly imageUri: string
  /** `source_config.resource_spec` and `source_config.listener_config` of the deployment. */
  readonly resources: ResourceSpec | null
  readonly listenerConfig: { readonly k8s_namespace?: string | null | undefined } | null
  /** The deployment's secrets and what the platform sets; wins over the image's own. */
  readonly env: Readonly<Record<string, string>>
}

export interface StartEffects {
  readonly log: BuildLog
  readonly signal: AbortSignal
  /** Until `GET /ok` must have answered. Fetching an image has a limit of its own. */
  readonly timeoutMs: number
  /** Hears the very image that a tag names, as soon as that is known: the reference as it was given with the digest behind it. */
  readonly onImage?: (imageUri: string) => void
}

/** An agent that a runtime finds running, whoever started it. */
export interface SeenAgent {
  readonly agentId: string
  readonly reference: string
}

/** Where agents run. */
export interface Runtime<Start> {
  /** Why nothing can be started here at present, in one sentence without a full stop; null when it can. Answers within seconds. */
  unavailable(): Promise<string | null>
  /**
   * Resolves when the agent answers `GET /ok`; nothing is left running otherwise.
   * @throws {StartFailure} when it ends or stays silent, or what it is started from is not there.
   */
  start(request: Start, effects: StartEffects): Promise<AgentProcess>
  /** Ends an agent that an earlier platform left behind. False when it is gone, or the reference is another runtime's. */
  endStray(reference: string): Promise<boolean>
  /** All agents of this installation that this runtime can see, of other nodes as well. Empty where agents end with their platform. */
  list(): Promise<readonly SeenAgent[]>
}

/** The runtime of each source. */
export interface Runtimes {
  readonly git_host: Runtime<BuildStart>
  readonly external_docker: Runtime<ImageStart>
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
