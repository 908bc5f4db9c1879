import type { V1LocalObjectReference, V1ResourceRequirements } from '@kubernetes/client-node'
import { z } from 'zod'
import type { ResourceSpec } from '../../../../contract/resource-spec.ts'
import type { BuildLog } from '../../build-log.ts'

/** `resource_spec` in the cluster's terms. */
export interface ClusterResources {
  readonly replicas: number
  readonly resources: V1ResourceRequirements
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly pullSecrets: readonly V1LocalObjectReference[]
  readonly serviceAccountName: string | null
}

const texts = z.record(z.string(), z.string()).nullish().catch(undefined)

/** The fields that only a cluster understands (hosted service), as far as this one does. */
const clusterFields = z.object({
  labels: texts,
  annotations: texts,
  image_pull_secrets: z
    .array(z.object({ name: z.string() }))
    .nullish()
    .catch(undefined),
  service_account_name: z.string().nullish().catch(undefined),
})

const SCALARS = ['min_scale', 'max_scale', 'cpu', 'cpu_limit', 'memory_mb', 'memory_limit_mb']

/** Says in the log what of it has no effect here. Never fewer replicas than one: nothing would wake an agent that has none. */
export function clusterResources(spec: ResourceSpec | null, log: BuildLog): ClusterResources {
  const given: ResourceSpec = spec ?? {}
  const fields = clusterFields.parse(given)
  const replicas = Math.max(1, given.min_scale ?? 1)
  if (given.min_scale === 0) log.write('WARNING', 'min_scale is 0, and this platform does not scale to zero: one replica runs')
  if ((given.max_scale ?? replicas) > replicas) {
    log.write(
      'WARNING',
      `max_scale is ${given.max_scale}, and this platform does not scale by load: min_scale is what runs (${replicas})`,
    )
  }
  const unused = Object.entries(given).filter(([name, value]) => value !== null && value !== undefined && !isUsed(name, fields))
  if (unused.length > 0) log.write('WARNING', `resource_spec: without effect here: ${unused.map(([name]) => name).join(', ')}`)
  return {
    replicas,
    resources: requirementsOf(given),
    labels: fields.labels ?? {},
    annotations: fields.annotations ?? {},
    pullSecrets: fields.image_pull_secrets ?? [],
    serviceAccountName: fields.service_account_name || null,
  }
}

function isUsed(name: string, fields: z.infer<typeof clusterFields>): boolean {
  return SCALARS.includes(name) || (name in fields && fields[name as keyof typeof fields] !== undefined)
}

/** A request above its limit is refused by every cluster: the limit wins. */
function requirementsOf({
  cpu,
  cpu_limit: cpuLimit,
  memory_mb: memoryMb,
  memory_limit_mb: memoryLimitMb,
}: ResourceSpec): V1ResourceRequirements {
  const requests: Record<string, string> = {}
  const limits: Record<string, string> = {}
  if (cpu) requests['cpu'] = millicores(Math.min(cpu, cpuLimit || cpu))
  if (memoryMb) requests['memory'] = `${Math.min(memoryMb, memoryLimitMb || memoryMb)}Mi`
  if (cpuLimit) limits['cpu'] = millicores(cpuLimit)
  if (memoryLimitMb) limits['memory'] = `${memoryLimitMb}Mi`
  return { requests, limits }
}

function millicores(cores: number): string {
  return `${Math.round(cores * 1000)}m`
}
