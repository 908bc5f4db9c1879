import type { V1Deployment, V1ObjectMeta, V1Secret, V1Service } from '@kubernetes/client-node'

const LABEL_KEY = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/
const SUBDOMAIN = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/
const SERVICE_NAME = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/
const SECRET_KEY = /^[A-Za-z0-9._-]{1,253}$/
const SECRET_MAX = 1024 * 1024
const QUANTITY = /^\d+(m|Mi)?$/

type Kinded = { kind?: string; metadata?: V1ObjectMeta }

/** What an API server checks beyond the schema, for the kinds and the fields that agents use: in its own sentences as far as they matter. */
export function ruleFaults(object: Kinded): string[] {
  const own: Record<string, ((object: never) => string[]) | undefined> = {
    Deployment: deploymentFaults,
    Secret: secretFaults,
    Service: serviceFaults,
  }
  return [...metadataFaults(object.metadata), ...(own[object.kind ?? '']?.(object as never) ?? [])]
}

function metadataFaults(metadata: V1ObjectMeta | undefined): string[] {
  const faults = labelFaults(metadata?.labels)
  if (!SUBDOMAIN.test(metadata?.name ?? '')) faults.push(`metadata.name: Invalid value: "${metadata?.name}"`)
  for (const owner of metadata?.ownerReferences ?? [])
    if (owner.uid === '') faults.push('metadata.ownerReferences.uid: must not be empty')
  return faults
}

function labelFaults(labels: Record<string, string> | undefined): string[] {
  return Object.entries(labels ?? {})
    .filter(([key, value]) => !LABEL_KEY.test(key) || !LABEL_VALUE.test(value))
    .map(([key, value]) => `metadata.labels: Invalid value: "${key}=${value}"`)
}

function deploymentFaults({ metadata, spec }: V1Deployment): string[] {
  const faults = labelFaults(spec?.template.metadata?.labels)
  // The name of a pod is the Deployment's with 17 characters more; it is a label of the pod's own host name.
  if ((metadata?.name ?? '').length > 46) faults.push('metadata.name: its pods would have cut names')
  const labels = spec?.template.metadata?.labels ?? {}
  for (const [key, value] of Object.entries(spec?.selector?.matchLabels ?? {})) {
    if (labels[key] !== value) faults.push('spec.template.metadata.labels: `selector` does not match template `labels`')
  }
  for (const container of spec?.template.spec?.containers ?? []) {
    if ((container.image ?? '').trim() === '') faults.push('spec.template.spec.containers[0].image: Required value')
    const { requests = {}, limits = {} } = container.resources ?? {}
    for (const quantity of [...Object.values(requests), ...Object.values(limits)])
      if (!QUANTITY.test(quantity)) faults.push(`quantity ${quantity}`)
    for (const [name, limit] of Object.entries(limits)) {
      if (Number.parseInt(requests[name] ?? '0', 10) > Number.parseInt(limit, 10))
        faults.push(`must be less than or equal to ${name} limit`)
    }
    for (const { value } of container.env ?? []) if (value !== undefined) faults.push('an environment in clear')
  }
  if ((spec?.progressDeadlineSeconds ?? 600) <= (spec?.minReadySeconds ?? 0)) faults.push('must be greater than minReadySeconds')
  return faults
}

function secretFaults({ stringData = {}, data = {} }: V1Secret): string[] {
  const faults = [...Object.keys(stringData), ...Object.keys(data)]
    .filter((key) => !SECRET_KEY.test(key))
    .map((key) => `data[${key}]: Invalid value`)
  const bytes = Object.values(stringData).reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  return bytes > SECRET_MAX ? [...faults, `data: Too long: may not be more than ${SECRET_MAX} bytes`] : faults
}

function serviceFaults({ metadata, spec }: V1Service): string[] {
  const faults = SERVICE_NAME.test(metadata?.name ?? '') ? [] : [`metadata.name: Invalid value: "${metadata?.name}"`]
  for (const { port } of spec?.ports ?? []) if (!(port > 0 && port < 65_536)) faults.push(`spec.ports: Invalid value: ${port}`)
  return faults
}
