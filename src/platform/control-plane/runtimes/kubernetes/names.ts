import type { ImageStart } from '../runtime.ts'

/** The container of an agent in its pods. */
export const CONTAINER = 'agent'

export const LABELS = {
  installation: 'deploy-agent-server/installation',
  agent: 'deploy-agent-server/agent',
  deployment: 'deploy-agent-server/deployment',
  revision: 'deploy-agent-server/revision',
} as const

/** A Deployment of the cluster, with its Secret and its Service of the same name. */
export interface Place {
  readonly namespace: string
  readonly name: string
}

const READABLE_MAX = 27
const ID_DIGITS = 12
const LABEL_VALUE_MAX = 63

/** A name for all that belongs to one start: short enough for a Service, and for what the cluster appends to it for pods. */
export function nameOf({ deploymentName, agentId }: Pick<ImageStart, 'deploymentName' | 'agentId'>): string {
  const readable = plain(deploymentName, READABLE_MAX)
  return ['agent', readable, agentId.replaceAll('-', '').slice(0, ID_DIGITS)].filter((part) => part !== '').join('-')
}

function plain(text: string, max: number): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, max)
    .replace(/^-+|-+$/g, '')
}

/** Labels of all that belongs to one start. */
export function labelsOf(request: ImageStart, installationId: string): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'agent-server',
    'app.kubernetes.io/instance': plain(request.deploymentName, LABEL_VALUE_MAX),
    'app.kubernetes.io/managed-by': 'deploy-agent-server',
    [LABELS.installation]: installationId,
    [LABELS.agent]: request.agentId,
    [LABELS.deployment]: request.deploymentId,
    [LABELS.revision]: request.revisionId,
  }
}

/** Selects the pods of one start. */
export function selectorOf(agentId: string): string {
  return `${LABELS.agent}=${agentId}`
}

export function referenceOf({ namespace, name }: Place): string {
  return `kubernetes:${namespace}/${name}`
}

/** Null when the reference is another runtime's. */
export function placeOf(reference: string): Place | null {
  const [, namespace, name] = /^kubernetes:([a-z0-9-]+)\/([a-z0-9-]+)$/.exec(reference) ?? []
  return namespace === undefined || name === undefined ? null : { namespace, name }
}
