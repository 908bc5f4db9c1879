import type { Source } from '../../../contract/revision.ts'
import type { Runtimes } from './runtime.ts'

/** Why a source cannot run on this platform at present, in one sentence; null when it can. Asked anew for each revision. */
export type RuntimeAvailability = (source: Source) => Promise<string | null>

export function availabilityOf(runtimes: Runtimes): RuntimeAvailability {
  return (source) => runtimes[source].unavailable()
}
