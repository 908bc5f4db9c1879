import { createHash } from 'node:crypto'
import { DEPLOYMENT_NAME_MAX } from '../../contract/name.ts'

const HASH_LENGTH = 8
/** Digits of the longest number of a pull request: GitHub's are 32-bit integers. */
const NUMBER_DIGITS_MAX = 10
export const PULL_REQUEST_MAX = 2_147_483_647

/**
 * Name of the deployment of a pull request: `<base>-pr-<number>`. A base that leaves no room for that is cut, and a hash of the whole
 * of it takes the place of the rest: the same base always gives the same name, and no other base does. `base` is a valid name.
 */
export function previewName(base: string, pullRequest: number): string {
  const suffix = `-pr-${pullRequest}`
  if (base.length + suffix.length <= DEPLOYMENT_NAME_MAX) return base + suffix
  const hash = createHash('sha256').update(base).digest('hex').slice(0, HASH_LENGTH)
  return `${trimmed(base.slice(0, DEPLOYMENT_NAME_MAX - suffix.length - HASH_LENGTH - 1))}-${hash}${suffix}`
}

/** A text that the names of all previews of this base contain: the longest that is known without the number. */
export function commonPart(base: string): string {
  const longest = `-pr-${'0'.repeat(NUMBER_DIGITS_MAX)}`
  if (base.length + longest.length <= DEPLOYMENT_NAME_MAX) return `${base}-pr-`
  return trimmed(base.slice(0, DEPLOYMENT_NAME_MAX - longest.length - HASH_LENGTH - 1))
}

/** The number of the pull request whose preview has this name; undefined for a name that `previewName` does not give. */
export function pullRequestOf(name: string, base: string): number | undefined {
  const digits = /-pr-([1-9]\d{0,9})$/.exec(name)?.[1]
  if (digits === undefined) return undefined
  const number = Number(digits)
  return number <= PULL_REQUEST_MAX && previewName(base, number) === name ? number : undefined
}

function trimmed(text: string): string {
  return text.replace(/-+$/, '')
}
