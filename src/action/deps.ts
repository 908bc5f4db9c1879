import type { AgentServer } from '../client/agent-server.ts'
import type { BulkExports } from '../client/bulk-export.ts'
import type { ControlPlane } from '../client/control-plane.ts'
import type { Effects } from '../client/effects.ts'
import type { GithubContext } from './github/context.ts'
import type { Github } from './github/github.ts'
import type { Journal } from './journal.ts'
import type { Log } from './report/log.ts'

/** Everything that a step does to the world. */
export type Deps = {
  controlPlane: ControlPlane
  /** The same, but each request is sent once: for those who wait and ask again by themselves. */
  once: ControlPlane
  /** The agent server at this address, with the step's key; each request is sent once. */
  agentServer: (url: string) => AgentServer
  /** Bulk export through the main API at this address; `once` as above. */
  bulkExports: (apiUrl: string) => { api: BulkExports; once: BulkExports }
  /** Reads a file of the checked-out repository; undefined when it is not there. */
  checkout: (path: string) => string | undefined
  /** Hides every secret of the step: for a text that is to be cut, since half a secret would not be known again. */
  redact: (text: string) => string
  /** GitHub, for the repository of the workflow; undefined without a token or a repository. */
  github: Github | undefined
  /** What the runner says about the workflow. */
  context: GithubContext
  effects: Effects
  log: Log
  journal: Journal
  /** Aborts when the workflow is cancelled. */
  signal: AbortSignal
}
