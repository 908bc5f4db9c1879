import { z } from 'zod'

/** Longest name of a deployment: it is a DNS label of its address (hosted service). */
export const DEPLOYMENT_NAME_MAX = 63

export const DEPLOYMENT_NAME_PATTERN = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

export const DEPLOYMENT_NAME_RULE =
  'lower-case letters, digits and hyphens, beginning and ending with a letter or a digit, 63 characters at most'

export const deploymentNameSchema = z.string().regex(DEPLOYMENT_NAME_PATTERN, `name should have ${DEPLOYMENT_NAME_RULE}`)

/**
 * Brings a name into the service's alphabet: lower case, anything else becomes one hyphen, ends trimmed, cut to 63 characters.
 * Returns `''` when nothing usable is left. Idempotent.
 */
export function normaliseDeploymentName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, DEPLOYMENT_NAME_MAX)
    .replace(/-$/, '')
}
