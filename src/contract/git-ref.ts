import { z } from 'zod'

/** A tag is given as the full ref path (specification 2.2). */
export const TAG_REF_PREFIX = 'refs/tags/'

export function isTagRef(ref: string): boolean {
  return ref.startsWith(TAG_REF_PREFIX)
}

/** Longest ref that we accept: longer than any file system can hold as a loose ref. */
export const GIT_REF_MAX = 255

// The rules of git-check-ref-format(1), and no leading hyphen, so that a ref can never be read as an option.
const FORBIDDEN = /[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|^\/|\/$|\.$|^-|^@$/

/** True for a name that git accepts as a branch or as a full ref. */
export function isValidGitRef(ref: string): boolean {
  if (ref.length === 0 || ref.length > GIT_REF_MAX || FORBIDDEN.test(ref)) return false
  return ref.split('/').every((part) => !part.startsWith('.') && !part.endsWith('.lock'))
}

export const GIT_REF_RULE = "a bare branch name, or a full tag ref that starts with 'refs/tags/'"

/**
 * `repo_ref` (specification 2.2): a bare branch name or `refs/tags/…`. Any other `refs/…` path is refused: the service would
 * look for a branch of that odd name.
 */
export const repoRefSchema = z
  .string()
  .refine((ref) => isValidGitRef(ref) && (!ref.startsWith('refs/') || isTagRef(ref)), `repo_ref should be ${GIT_REF_RULE}`)
