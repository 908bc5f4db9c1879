import type { ContainerCreateOptions } from 'dockerode'
import type { ResourceSpec } from '../../../../contract/resource-spec.ts'
import type { BuildLog } from '../../build-log.ts'
import { environmentOf, portOf } from '../image-environment.ts'
import type { ImageStart } from '../runtime.ts'
import type { EngineFacts } from './facts.ts'
import type { FetchedImage } from './image.ts'
import type { Placement } from './placement.ts'

export const LABELS = {
  installation: 'deploy-agent-server.installation',
  agent: 'deploy-agent-server.agent',
  deployment: 'deploy-agent-server.deployment',
  revision: 'deploy-agent-server.revision',
} as const

/** What an entry point needs that prepares its folders as root and goes on as another user. Nothing else is left. */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE']

const PROCESSES_MAX = 4096
const MIB = 1024 ** 2

export interface ContainerPlan {
  readonly request: ImageStart
  readonly image: FetchedImage
  readonly placement: Placement
  readonly installationId: string
  readonly facts: EngineFacts
  readonly log: BuildLog
}

/** A container for an agent: its environment, its limits, and as few rights as agent servers get along with. */
export function containerOptions({
  request,
  image,
  placement,
  installationId,
  facts,
  log,
}: ContainerPlan): ContainerCreateOptions {
  const port = `${portOf(request)}/tcp`
  const published = placement.network === null ? { [port]: [{ HostIp: placement.publish, HostPort: '' }] } : {}
  return {
    name: `agent-${request.deploymentName}-${request.agentId.replaceAll('-', '').slice(0, 12)}`,
    Image: image.id,
    Env: Object.entries(environmentOf(request)).map(([name, value]) => `${name}=${value}`),
    ExposedPorts: { [port]: {} },
    Labels: {
      [LABELS.installation]: installationId,
      [LABELS.agent]: request.agentId,
      [LABELS.deployment]: request.deploymentId,
      [LABELS.revision]: request.revisionId,
    },
    HostConfig: {
      PortBindings: published,
      ...(placement.network === null ? {} : { NetworkMode: placement.network }),
      // Podman has a name of its own for it, in every container.
      ...(facts.podman ? {} : { ExtraHosts: ['host.docker.internal:host-gateway'] }),
      // Started again by the platform alone: it knows whether the agent is still wanted.
      RestartPolicy: { Name: 'no' },
      Privileged: false,
      SecurityOpt: ['no-new-privileges'],
      CapDrop: ['ALL'],
      CapAdd: CAPABILITIES,
      PidsLimit: PROCESSES_MAX,
      // The first process of a container ignores signals that it does not handle, and reaps nobody.
      ...(facts.init ? { Init: true } : {}),
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      ...resourcesOf(request.resources, facts, log),
    },
  }
}

type Resources = Pick<
  NonNullable<ContainerCreateOptions['HostConfig']>,
  'NanoCpus' | 'CpuShares' | 'Memory' | 'MemorySwap' | 'MemoryReservation'
>

/** `resource_spec` in the engine's terms: limits as limits, requests as the weight and the reservation under contention. */
function resourcesOf(spec: ResourceSpec | null, { cpus }: EngineFacts, log: BuildLog): Resources {
  const { cpu, cpu_limit: cpuLimit, memory_mb: memoryMb, memory_limit_mb: memoryLimitMb } = spec ?? {}
  const resources: Resources = {}
  if (cpuLimit) {
    if (cpuLimit > cpus)
      log.write('WARNING', `cpu_limit is ${cpuLimit}, and the engine's machine has ${cpus} CPUs: they are the limit`)
    resources.NanoCpus = Math.round(Math.min(cpuLimit, cpus) * 1e9)
  }
  if (cpu) resources.CpuShares = Math.max(2, Math.round(cpu * 1024))
  if (memoryLimitMb) {
    resources.Memory = memoryLimitMb * MIB
    // Without swap: beyond the limit is beyond the limit.
    resources.MemorySwap = memoryLimitMb * MIB
  }
  if (memoryMb) resources.MemoryReservation = Math.min(memoryMb, memoryLimitMb ?? memoryMb) * MIB
  return resources
}
