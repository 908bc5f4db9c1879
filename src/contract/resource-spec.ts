import { z } from 'zod'

const scale = z.int().min(0).max(100)
const cpu = z.number().min(0.1).max(8)
const cpuLimit = z.number().min(0.1).max(16)
const memoryMb = z.int().min(64).max(1_048_576)

/** Longest form of a `resource_spec` as JSON, in characters: whatever it holds is stored and shown. */
export const RESOURCE_SPEC_MAX = 32_768

/**
 * What the agent server may use of its host (hosted service), for the source `external_docker` only. CPUs in cores, memory in
 * MiB. A PATCH replaces the whole object. Fields that only a cluster understands are carried as they are.
 */
export const resourceSpecSchema = z
  .looseObject({
    min_scale: scale.nullish(),
    max_scale: scale.nullish(),
    cpu: cpu.nullish(),
    cpu_limit: cpuLimit.nullish(),
    memory_mb: memoryMb.nullish(),
    memory_limit_mb: memoryMb.nullish(),
  })
  .refine((spec) => JSON.stringify(spec).length <= RESOURCE_SPEC_MAX, `resource_spec should have ${RESOURCE_SPEC_MAX} characters at most`)
export type ResourceSpec = z.infer<typeof resourceSpecSchema>
