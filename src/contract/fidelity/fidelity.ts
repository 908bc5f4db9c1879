import { BULK_EXPORT } from './bulk-export.ts'
import { CONTROL_PLANE } from './control-plane.ts'
import type { Area } from './evidence.ts'
import { TRACES } from './traces.ts'
import { AGENT_SERVER, UNDESCRIBED } from './undescribed.ts'

/** Areas whose routes are in the platform's `/openapi.json`. */
export const DESCRIBED_AREAS: readonly Area[] = [CONTROL_PLANE, BULK_EXPORT, TRACES]
export const AREAS: readonly Area[] = [...DESCRIBED_AREAS, UNDESCRIBED, AGENT_SERVER]

/** Schemas that read an object liberally, and the object that they read: its evidence is theirs. */
export const READS: Readonly<Record<string, string>> = {
  deploymentAnswerSchema: 'deploymentSchema',
  revisionAnswerSchema: 'revisionSchema',
  logsAnswerSchema: 'logsResponseSchema',
  logEntryAnswerSchema: 'logEntrySchema',
}

/** Schemas of one part of an object that stands there with its evidence. */
export const PARTS: Readonly<Record<string, string>> = { feedbackStatsSchema: 'runSchema.feedback_stats' }

/** What somebody who knows the hosted service might look for in the platform, and will not find. */
export const NOT_THE_PLATFORM: readonly string[] = [
  'It is no copy of the hosted service: it answers as its contract says, and where nobody says, as this project chose.',
  'No user interface, no accounts, no organisations, no roles: one key opens one workspace.',
  'No git integrations and listeners: repositories are read by their address, with a token from the environment where they are private. `/v1/integrations/…` and `/v2/listeners` are not there.',
  'No uploads of sources or images: the sources are `git_host` and `external_docker`.',
  'No sandbox for agents that run as processes: build only repositories that you trust.',
  'Run rules, datasets, annotation queues, prompts, dashboards and evaluators of the main API are not there, nor its `v2` routes.',
  'No billing, no usage limits by plan: the plan only decides on bulk export.',
  'Exports go to S3-compatible buckets only; exports of experiments (`all_experiments`) and assumed roles (`aws_role_arn`) are not there.',
  'Native preview builds of the hosted service have no interface that is known; previews are made by the action.',
]
