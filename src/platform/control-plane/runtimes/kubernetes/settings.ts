import { isIP } from 'node:net'

export type KubernetesEnvironment = Readonly<Record<string, string | undefined>>

/** What the variables of a platform say about the cluster that runs its images. */
export interface KubernetesSettings {
  /** Where agents may be put, the default first; empty: the namespace that the credentials belong to, and no other. */
  readonly namespaces: readonly string[]
  /** Existing secrets with the logins of registries. */
  readonly pullSecrets: readonly string[]
  /** A host that answers at the cluster's node ports; null: agents are reached at their Services, from within the cluster. */
  readonly nodeHost: string | null
  /** The user that agents run as; null: the image's own, which may be root with the rights that entry points need. */
  readonly runAsUser: number | null
}

/** A variable is wrong. */
export class KubernetesSettingsError extends Error {}

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/
const HOST = /^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$/
const USER_MAX = 2 ** 31 - 1

/**
 * Reads `PLATFORM_KUBERNETES_NAMESPACES`, `…_PULL_SECRETS`, `…_NODE_HOST` and `…_RUN_AS_USER`.
 * @throws {KubernetesSettingsError} that names the variable and what it takes.
 */
export function readKubernetesSettings(env: KubernetesEnvironment): KubernetesSettings {
  return {
    namespaces: namesIn(env, { variable: 'PLATFORM_KUBERNETES_NAMESPACES', form: LABEL, what: 'names of namespaces' }),
    pullSecrets: namesIn(env, { variable: 'PLATFORM_KUBERNETES_PULL_SECRETS', form: SUBDOMAIN, what: 'names of secrets' }),
    nodeHost: hostIn(env, 'PLATFORM_KUBERNETES_NODE_HOST'),
    runAsUser: userIn(env, 'PLATFORM_KUBERNETES_RUN_AS_USER'),
  }
}

function namesIn(
  env: KubernetesEnvironment,
  { variable, form, what }: { variable: string; form: RegExp; what: string },
): string[] {
  const names = (env[variable] ?? '').split(/[\s,]+/).filter((name) => name !== '')
  const wrong = names.find((name) => !form.test(name))
  if (wrong !== undefined) throw new KubernetesSettingsError(`${variable} has '${wrong}': give ${what} with commas between them`)
  return [...new Set(names)]
}

function hostIn(env: KubernetesEnvironment, variable: string): string | null {
  const host = env[variable] || null
  if (host !== null && isIP(host) !== 4 && !HOST.test(host)) {
    throw new KubernetesSettingsError(`${variable} is '${host}': give the name or the IPv4 address of a node, without a port`)
  }
  return host
}

function userIn(env: KubernetesEnvironment, variable: string): number | null {
  const text = env[variable] || null
  if (text === null) return null
  const user = Number(text)
  if (!/^\d+$/.test(text) || user < 1 || user > USER_MAX) {
    throw new KubernetesSettingsError(`${variable} is '${text}': give the number of a user that is not root`)
  }
  return user
}
