import type { Dialect } from '../contract/dialects.ts'
import type { Effects } from './effects.ts'
import type { OnRetry } from './retry.ts'
import type { Transport } from './transport.ts'

/** What the control plane's operations work with. */
export type ControlPlaneContext = {
  transport: Transport
  dialect: Dialect
  effects: Effects
  /** Called before a write is repeated after an ambiguous failure. The transport's own repetitions are its own to report. */
  onRetry?: OnRetry
}
