import type { Clock } from '../clock.ts'
import type { Offering } from '../control-plane/source-rules.ts'
import type { Database } from '../database/schema.ts'
import type { SecretBox } from '../secrets.ts'
import type { EndpointRules } from './bucket/endpoint.ts'
import type { ExportSettings } from './settings.ts'

/** What requests about bulk export need of the platform. */
export interface ExportContext {
  readonly db: Database
  readonly secretBox: SecretBox
  readonly offering: Offering
  readonly clock: Clock
  readonly settings: ExportSettings
  readonly rules: EndpointRules
}
