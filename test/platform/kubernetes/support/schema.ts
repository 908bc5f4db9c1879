import * as client from '@kubernetes/client-node'
import { validate as validateReview } from 'kubernetes-models/_schemas/IoK8sApiAuthorizationV1SelfSubjectAccessReview'
import { validate as validateDeployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment'
import { validate as validateStatefulSet } from 'kubernetes-models/_schemas/IoK8sApiAppsV1StatefulSet'
import { validate as validateNamespace } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Namespace'
import { validate as validateSecret } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Secret'
import { validate as validateService } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service'
import { validate as validateServiceAccount } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount'
import { validate as validateNetworkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy'
import { validate as validateRole } from 'kubernetes-models/_schemas/IoK8sApiRbacV1Role'
import { validate as validateRoleBinding } from 'kubernetes-models/_schemas/IoK8sApiRbacV1RoleBinding'

interface Validate {
  (value: unknown): boolean
  errors?: readonly { instancePath: string; message?: string; keyword: string; params: unknown }[] | null
}

/** Two renderings of the OpenAPI description of Kubernetes: JSON schemas (required fields, types, formats), and every type's fields. */
const KINDS: Record<string, readonly [string, Validate]> = {
  'apps/v1/Deployment': ['V1Deployment', validateDeployment],
  'apps/v1/StatefulSet': ['V1StatefulSet', validateStatefulSet],
  'v1/Namespace': ['V1Namespace', validateNamespace],
  'v1/Secret': ['V1Secret', validateSecret],
  'v1/Service': ['V1Service', validateService],
  'v1/ServiceAccount': ['V1ServiceAccount', validateServiceAccount],
  'networking.k8s.io/v1/NetworkPolicy': ['V1NetworkPolicy', validateNetworkPolicy],
  'rbac.authorization.k8s.io/v1/Role': ['V1Role', validateRole],
  'rbac.authorization.k8s.io/v1/RoleBinding': ['V1RoleBinding', validateRoleBinding],
  'authorization.k8s.io/v1/SelfSubjectAccessReview': ['V1SelfSubjectAccessReview', validateReview],
}

/** Every fault of an object by the description of its kind, unknown fields among them. Empty when it has none. */
export function schemaFaults(object: unknown): string[] {
  const { apiVersion, kind } = (object ?? {}) as { apiVersion?: string; kind?: string }
  const known = KINDS[`${apiVersion}/${kind}`]
  if (known === undefined) return [`${apiVersion}/${kind} is no kind that is known here`]
  const [type, validate] = known
  const faults = validate(object)
    ? []
    : (validate.errors ?? []).map((one) => `${one.instancePath}: ${one.keyword} ${JSON.stringify(one.params)}`)
  return [...faults, ...fieldFaults(object, { type, at: kind ?? '' })]
}

interface Attribute {
  readonly baseName: string
  readonly type: string
}

/** Fields that a type does not have, and values that are not what a field holds. */
export function fieldFaults(value: unknown, { type, at }: { type: string; at: string }): string[] {
  if (value === undefined || value === null) return []
  const [, item] = /^Array<(.+)>$/.exec(type) ?? []
  if (item !== undefined) {
    return Array.isArray(value)
      ? value.flatMap((one, index) => fieldFaults(one, { type: item, at: `${at}[${index}]` }))
      : [`${at}: no list`]
  }
  const [, entry] = /^\{ \[key: string\]: (.+); \}$/.exec(type) ?? []
  if (entry !== undefined) {
    return Object.entries(value as object).flatMap(([key, one]) => fieldFaults(one, { type: entry, at: `${at}.${key}` }))
  }
  const model = (client as unknown as Record<string, { getAttributeTypeMap?: () => Attribute[] } | undefined>)[type]
  if (model?.getAttributeTypeMap === undefined) return plainFaults(value, { type, at })
  if (typeof value !== 'object' || Array.isArray(value)) return [`${at}: no ${type}`]
  const attributes = new Map(model.getAttributeTypeMap().map((attribute) => [attribute.baseName, attribute.type]))
  return Object.entries(value).flatMap(([name, one]) => {
    const inner = attributes.get(name)
    return inner === undefined
      ? [`${at}.${name}: ${type} has no such field`]
      : fieldFaults(one, { type: inner, at: `${at}.${name}` })
  })
}

function plainFaults(value: unknown, { type, at }: { type: string; at: string }): string[] {
  const fits: Record<string, boolean> = {
    string: typeof value === 'string',
    number: typeof value === 'number',
    boolean: typeof value === 'boolean',
    Date: typeof value === 'string' || value instanceof Date,
    V1MicroTime: typeof value === 'string' || value instanceof Date,
    IntOrString: typeof value === 'number' || typeof value === 'string',
    any: true,
    object: typeof value === 'object',
  }
  return fits[type] === true ? [] : [`${at}: no ${type}`]
}
