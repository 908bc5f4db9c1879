import { z } from 'zod'

export const PROJECT_NAME_LENGTH_MAX = 255

const name = z.string().min(1).max(PROJECT_NAME_LENGTH_MAX)
const extra = z.record(z.string(), z.unknown())

/** The body of `POST /sessions`. With `?upsert=true` a project of that name is answered instead of refused. */
export const projectCreateSchema = z.looseObject({
  id: z.uuid().nullish(),
  name,
  description: z.string().nullish(),
  extra: extra.nullish(),
  reference_dataset_id: z.uuid().nullish(),
  start_time: z.string().nullish(),
})
export type ProjectCreate = z.infer<typeof projectCreateSchema>

/** The body of `PATCH /sessions/{session_id}`: what is absent or null stays. */
export const projectPatchSchema = z.looseObject({
  name: name.nullish(),
  description: z.string().nullish(),
  extra: extra.nullish(),
  end_time: z.string().max(64).nullish(),
})
export type ProjectPatch = z.infer<typeof projectPatchSchema>

/** A tracing project; the wire calls it a session. The numbers are there when `include_stats` was asked for, else null. */
export const projectSchema = z.looseObject({
  id: z.uuid(),
  tenant_id: z.uuid(),
  name: z.string(),
  description: z.string().nullable(),
  extra: extra.nullable(),
  start_time: z.string(),
  end_time: z.string().nullable(),
  reference_dataset_id: z.uuid().nullable(),
  run_count: z.int().nullable(),
  last_run_start_time: z.string().nullable(),
})
export type TracingProject = z.infer<typeof projectSchema>

export function projectNotFound(projectId: string): string {
  return `Session ID ${projectId} not found.`
}
