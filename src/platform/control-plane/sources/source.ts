import type { BuildLog } from '../build-log.ts'

/** A git repository and the ref of it to build. */
export interface GitSource {
  /** `https://…`, `http://…`, or, where the platform allows it, `file://…` or an absolute path. */
  readonly repoUrl: string
  /** A bare branch name, `refs/tags/…`, or `HEAD`: the repository's default branch. */
  readonly ref: string
  /** The full SHA of the one commit to build, whatever the ref names by now. */
  readonly commit?: string | undefined
  /** Opens a private repository; sent to the repository's own origin only. */
  readonly token?: string | undefined
}

/** What a build needs besides its source. */
export interface BuildEffects {
  readonly log: BuildLog
  /** Stops the work and kills every process of it. */
  readonly signal: AbortSignal
  /** Hears which commit it is, as soon as that is known. */
  readonly onCommit?: ((commitSha: string) => void) | undefined
}

/** The build cannot succeed as the repository or the deployment stands: the user's fault, told in one sentence. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure'
}
