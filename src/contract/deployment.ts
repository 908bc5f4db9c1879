import { z } from 'zod'
import { deploymentNameSchema, normaliseDeploymentName } from './name.ts'
import { pageSchema } from './paging.ts'
import { resourceSpecSchema } from './resource-spec.ts'
import { sourceRevisionConfigInputSchema, sourceRevisionConfigSchema, sourceSchema } from './revision.ts'
import { secretsSchema } from './secret.ts'
import { deploymentStatusSchema } from './status.ts'

/** Secrets of a cluster, by reference: this service has no cluster, so there can be none. `[]` and null are said by habit. */
const secretReferencesSchema = z
  .array(z.unknown())
  .refine((references) => references.length === 0, 'secret_references name secrets of a cluster, and there is none here: use secrets')

/** What the ecosystem's clients send besides (hosted service): it is accepted, and it changes nothing here. */
const ACCEPTED_WITHOUT_EFFECT = {
  tracked_packages: z.array(z.string().max(255)).max(1000).nullish(),
  route_through_gateway: z.boolean().nullish(),
}

/** Where a deployment comes from and how it runs, as a request may carry it (hosted service). A null means "unchanged". */
export const sourceConfigInputSchema = z.strictObject({
  integration_id: z.guid().nullish(),
  repo_url: z.string().min(1).max(2048).nullish(),
  deployment_type: z.string().min(1).max(64).nullish(),
  build_on_push: z.boolean().nullish(),
  custom_url: z.url().max(2048).nullish(),
  resource_spec: resourceSpecSchema.nullish(),
  listener_id: z.guid().nullish(),
  listener_config: z.strictObject({ k8s_namespace: z.string().min(1).max(63).nullish() }).nullish(),
  install_command: z.string().min(1).max(2048).nullish(),
  build_command: z.string().min(1).max(2048).nullish(),
  /** Of a source that this service does not have; accepted as null because the ecosystem's clients send it so. */
  template_id: z.null().optional(),
})
export type SourceConfigInput = z.infer<typeof sourceConfigInputSchema>

/** Fields of `source_config` that are fixed at creation (specification 1.3; hosted service). */
export const FIXED_SOURCE_CONFIG_FIELDS = [
  'integration_id',
  'repo_url',
  'deployment_type',
  'listener_id',
  'listener_config',
] as const satisfies readonly (keyof SourceConfigInput)[]

/** `source_config` as the service answers it: every field there, null where it does not apply. */
export const sourceConfigSchema = z.object({
  integration_id: z.string().nullable(),
  repo_url: z.string().nullable(),
  deployment_type: z.string().nullable(),
  build_on_push: z.boolean().nullable(),
  custom_url: z.string().nullable(),
  resource_spec: resourceSpecSchema.nullable(),
  listener_id: z.string().nullable(),
  listener_config: z.object({ k8s_namespace: z.string().nullish() }).nullable(),
  install_command: z.string().nullable(),
  build_command: z.string().nullable(),
})
export type SourceConfig = z.infer<typeof sourceConfigSchema>

/** Body of `POST /v2/deployments` (hosted service). */
export const deploymentCreateSchema = z.strictObject({
  name: z.string().max(255).transform(normaliseDeploymentName).pipe(deploymentNameSchema),
  source: sourceSchema,
  source_config: sourceConfigInputSchema,
  source_revision_config: sourceRevisionConfigInputSchema,
  secrets: secretsSchema,
  secret_references: secretReferencesSchema.nullish(),
  display_name: z.string().min(1).max(255).nullish(),
  ...ACCEPTED_WITHOUT_EFFECT,
})
export type DeploymentCreate = z.infer<typeof deploymentCreateSchema>

/** Body of `PATCH /v2/deployments/{deployment_id}` (specification 2.2; hosted service). */
export const deploymentPatchSchema = z.strictObject({
  source: sourceSchema.nullish(),
  revision_source: sourceSchema.nullish(),
  source_config: sourceConfigInputSchema.nullish(),
  source_revision_config: sourceRevisionConfigInputSchema.nullish(),
  secrets: secretsSchema.nullish(),
  secret_references: secretReferencesSchema.nullish(),
  display_name: z.string().min(1).max(255).nullish(),
  ...ACCEPTED_WITHOUT_EFFECT,
})
export type DeploymentPatch = z.infer<typeof deploymentPatchSchema>

/** Body of `POST /v2/deployments/{deployment_id}/revisions` (hosted service): always makes a revision. */
export const revisionCreateSchema = z.strictObject({
  source_revision_config: sourceRevisionConfigInputSchema.nullish(),
  source_config: sourceConfigInputSchema.nullish(),
  secrets: secretsSchema.nullish(),
  secret_references: secretReferencesSchema.nullish(),
  ...ACCEPTED_WITHOUT_EFFECT,
})
export type RevisionCreate = z.infer<typeof revisionCreateSchema>

/**
 * Deployment (specification 2.5; hosted service). `latest_revision_id` is the newest one made, `active_revision_id` the one
 * that serves. Secrets come back by name only: `value` is always empty.
 */
export const deploymentSchema = z.object({
  id: z.uuid(),
  tenant_id: z.uuid(),
  name: z.string(),
  display_name: z.string().nullable(),
  status: deploymentStatusSchema,
  source: sourceSchema,
  source_config: sourceConfigSchema,
  source_revision_config: sourceRevisionConfigSchema,
  secrets: z.array(z.object({ name: z.string(), value: z.string() })),
  secret_references: z.array(z.unknown()).nullable(),
  latest_revision_id: z.uuid().nullable(),
  active_revision_id: z.uuid().nullable(),
  url: z.string().nullable(),
  image_version: z.string().nullable(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
})
export type Deployment = z.infer<typeof deploymentSchema>

export const deploymentsListSchema = pageSchema(deploymentSchema)
