import type { Source } from '../../../contract/revision.ts'

/** Why a source cannot run on this platform, in one sentence; null when it can. */
export type RuntimeAvailability = Readonly<Record<Source, string | null>>

/** Git sources run as processes of this machine; images need a container host, which this platform does not have. */
export const PROCESSES_ONLY: RuntimeAvailability = {
  git_host: null,
  external_docker: 'this platform has no container host to run images on',
}
