import { z } from 'zod'
import { graphConfigPathSchema } from './config-path.ts'
import { repoRefSchema } from './git-ref.ts'
import { pageSchema } from './paging.ts'
import { revisionStatusSchema } from './status.ts'

/** What a revision is made from (specification 2.1). Not changeable after creation. */
export const SOURCES = ['git_host', 'external_docker'] as const
export const sourceSchema = z.enum(SOURCES)
export type Source = z.infer<typeof sourceSchema>

export const IMAGE_URI_MAX = 1024
/** An image reference: no white space, no leading hyphen; the registry judges the rest. */
export const imageUriSchema = z
  .string()
  .max(IMAGE_URI_MAX)
  .regex(/^[A-Za-z0-9][^\s\x00-\x1f\x7f]*$/, 'image_uri should be an image reference like registry.example.com/team/agent:1.2.3')

/** SourceRevisionConfig as a request may carry it (specification 2.2). A null means "unchanged". */
export const sourceRevisionConfigInputSchema = z.strictObject({
  repo_ref: repoRefSchema.nullish(),
  graph_config_path: graphConfigPathSchema.nullish(),
  image_uri: imageUriSchema.nullish(),
  /** Of a source that this service does not have; accepted as null because the ecosystem's clients send it so. */
  source_tarball_path: z.null().optional(),
  repo_commit_sha: z.null('repo_commit_sha is read-only: give a branch or a tag as repo_ref').optional(),
})
export type SourceRevisionConfigInput = z.infer<typeof sourceRevisionConfigInputSchema>

/** SourceRevisionConfig as the service answers it (specification 2.2): every field there, null where it does not apply. */
export const sourceRevisionConfigSchema = z.object({
  repo_ref: z.string().nullable(),
  graph_config_path: z.string().nullable(),
  image_uri: z.string().nullable(),
  repo_commit_sha: z.string().nullable(),
})
export type SourceRevisionConfig = z.infer<typeof sourceRevisionConfigSchema>

/** Revision (specification 2.1). `status_message` says why, where there is something to say (hosted service). */
export const revisionSchema = z.object({
  id: z.uuid(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  status: revisionStatusSchema,
  status_message: z.string().nullable(),
  source: sourceSchema,
  source_revision_config: sourceRevisionConfigSchema,
})
export type Revision = z.infer<typeof revisionSchema>

export const revisionsListSchema = pageSchema(revisionSchema)
