import { z } from 'zod'
import { fromDialect } from './dialects.ts'

/**
 * Schemas to read the service's answers with: either dialect's names, statuses in any letter case, unknown
 * fields kept, unknown values carried as they are. Only what a client cannot do without is required; the rest becomes null.
 */

const id = z.string().min(1)
const text = z.string().nullish().transform((value) => value ?? null)
/** A field that is only shown: one of a strange type is no reason to refuse the whole answer. */
const shown = text.catch(null)
const flag = z.boolean().nullish().transform((value) => value ?? null)
const record = z.looseObject({}).nullish().transform((value) => value ?? null)
const status = z.string().min(1).transform((value) => value.trim().toUpperCase())

const sourceConfigAnswerSchema = z.looseObject({
  integration_id: text,
  repo_url: text,
  deployment_type: text,
  build_on_push: flag,
  custom_url: text,
  resource_spec: record,
  listener_id: text,
  listener_config: record,
  install_command: text,
  build_command: text,
})
export type SourceConfigAnswer = z.output<typeof sourceConfigAnswerSchema>

const sourceRevisionConfigAnswerSchema = z.looseObject({
  repo_ref: text,
  graph_config_path: text,
  image_uri: text,
  repo_commit_sha: text,
})
export type SourceRevisionConfigAnswer = z.output<typeof sourceRevisionConfigAnswerSchema>

/** Secrets are read by name only: some services send the values back, and nothing in a client may carry them on. */
const secretNamesSchema = z
  .array(z.looseObject({ name: z.string() }).transform(({ name }) => ({ name })))
  .nullish()
  .transform((secrets) => secrets ?? [])
  .catch([])

/** Deployment, as read (specification 2.5; hosted service). */
export const deploymentAnswerSchema = z.preprocess(
  fromDialect,
  z.looseObject({
    id,
    name: z.string().min(1),
    tenant_id: shown,
    display_name: shown,
    status: status.nullish().transform((value) => value ?? null),
    source: text,
    source_config: sourceConfigAnswerSchema.nullish().transform((value) => value ?? sourceConfigAnswerSchema.parse({})),
    source_revision_config: sourceRevisionConfigAnswerSchema
      .nullish()
      .transform((value) => value ?? sourceRevisionConfigAnswerSchema.parse({})),
    secrets: secretNamesSchema,
    latest_revision_id: id.nullish().transform((value) => value ?? null),
    /** Null: nothing serves. Absent: the service does not tell. */
    active_revision_id: id.nullish(),
    url: text,
    image_version: shown,
    created_at: shown,
    updated_at: shown,
  }),
)
export type DeploymentAnswer = z.output<typeof deploymentAnswerSchema>

/** Revision, as read (specification 2.1). `status` is upper case, one of section 3.1 or a newer one. */
export const revisionAnswerSchema = z.preprocess(
  fromDialect,
  z.looseObject({
    id,
    status,
    status_message: shown,
    source: text,
    source_revision_config: sourceRevisionConfigAnswerSchema
      .nullish()
      .transform((value) => value ?? sourceRevisionConfigAnswerSchema.parse({})),
    created_at: shown,
    updated_at: shown,
  }),
)
export type RevisionAnswer = z.output<typeof revisionAnswerSchema>

/** One page, as read (specification 2.3). An absent `offset` means that there is no next page. */
export function pageAnswerSchema<T extends z.ZodType>(resource: T) {
  return z.looseObject({
    resources: z.array(resource),
    offset: z.number().nullish().transform((value) => value ?? null),
  })
}

/** Epoch milliseconds of a number (already that) or an ISO 8601 string; null for anything else. */
const instant = z
  .union([z.number(), z.string().transform((value) => Date.parse(value))])
  .nullish()
  .transform((value) => (typeof value === 'number' && Number.isFinite(value) ? value : null))
  .catch(null)

/** One line of a log (hosted service): a free object, or a bare string. */
export const logEntryAnswerSchema = z.preprocess(
  (entry) => (typeof entry === 'string' ? { message: entry } : entry),
  z.looseObject({
    message: z.string().nullish().transform((value) => value ?? '').catch(''),
    level: z.string().nullish().transform((value) => value?.toUpperCase() ?? null).catch(null),
    timestamp: instant,
  }),
)
export type LogEntryAnswer = z.output<typeof logEntryAnswerSchema>

/** One page of a log; `next_offset` is opaque, null on the last page. */
export const logsAnswerSchema = z.looseObject({ logs: z.array(logEntryAnswerSchema), next_offset: text })
export type LogsAnswer = z.output<typeof logsAnswerSchema>

/** The agent server's address: `url`, then `source_config.custom_url`, else null (hosted service). */
export function deploymentAddress(deployment: DeploymentAnswer): string | null {
  return deployment.url || deployment.source_config.custom_url || null
}
