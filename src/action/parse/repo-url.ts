import type { Parsed } from './parsed.ts'

export const REPO_URL_RULE =
  'an address like https://github.com/team/agent or git@github.com:team/agent.git, without a password or token'

const URL_MAX = 2048
const SCP_LIKE = /^[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:[^\s:][^\s]*$/

/** Reads `repo-url`. */
export function parseRepoUrl(text: string): Parsed<string> {
  if (text.length > URL_MAX) return { problem: `is longer than ${URL_MAX} characters` }
  if (/[\s\x00-\x1f\x7f]/.test(text)) return { problem: 'contains white space' }
  if (SCP_LIKE.test(text)) return { value: text }
  if (!/^(https?|ssh|git|file):\/\//i.test(text) || !URL.canParse(text)) {
    const fix = /^[\w.-]+\/[\w.-]+$/.test(text) ? { fix: `write https://github.com/${text}` } : {}
    return { problem: 'is not the address of a git repository', ...fix }
  }
  const url = new URL(text)
  if (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:')) {
    return {
      problem: 'carries credentials, which the control plane would store and show',
      fix: 'take them out and use integration-id',
    }
  }
  if (url.search !== '' || url.hash !== '') return { problem: 'has a query or a fragment', fix: 'end it after the path' }
  return { value: text }
}

/**
 * One spelling for the addresses that mean one repository: host in lower case, no `.git`, no slash at the end, no default port.
 */
export function normaliseRepoUrl(text: string): string {
  const trimmed = text.trim()
  if (!URL.canParse(trimmed) || SCP_LIKE.test(trimmed)) return trimmed.replace(/\/+$/, '').replace(/\.git$/, '')
  const url = new URL(trimmed)
  const path = url.pathname
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .replace(/\/+$/, '')
  return `${url.protocol}//${url.username === '' ? '' : `${url.username}@`}${url.host.toLowerCase()}${path}`
}

/** True for two spellings of one address. Paths on GitHub's hosts are compared without regard to case, as GitHub does. */
export function sameRepoUrl(a: string, b: string): boolean {
  const [first, second] = [normaliseRepoUrl(a), normaliseRepoUrl(b)]
  return /^https?:\/\/(www\.)?github\.com\//.test(first) ? first.toLowerCase() === second.toLowerCase() : first === second
}
