import path from 'node:path'
import { BuildFailure, type GitSource } from './source.ts'

/** A repository that git may be sent to. */
export interface Remote {
  /** Without credentials: safe for arguments, for `.git/config` and for logs. */
  readonly url: string
  /** What git may speak here, submodules included (`GIT_ALLOW_PROTOCOL`). */
  readonly protocols: string
  /** The `Authorization` header, and the origin that alone may get it. */
  readonly authorization?: { readonly origin: string; readonly value: string }
}

/**
 * Judges a source's address. Only https and http leave the machine; a folder of this machine is a source where the platform allows
 * it, and a repository from elsewhere can never name one as a submodule.
 * @throws {BuildFailure} for any other address.
 */
export function parseRemote({ repoUrl, token }: GitSource, { allowLocal }: { allowLocal: boolean }): Remote {
  if (/[\x00-\x20\x7f]/.test(repoUrl) || repoUrl.startsWith('-')) throw refused(repoUrl, 'it has characters that no address has')
  if (path.isAbsolute(repoUrl)) return local(repoUrl, allowLocal)
  const url = URL.parse(repoUrl)
  if (url === null) throw refused(repoUrl, 'it is not an address')
  if (url.protocol === 'file:') {
    if (url.host !== '') throw refused(repoUrl, 'a file address has no host')
    return local(repoUrl, allowLocal)
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused(repoUrl, `${url.protocol}// is not supported`)
  const own = { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  url.username = ''
  url.password = ''
  url.hash = ''
  const remote = { url: url.href, protocols: 'https:http' }
  const credentials = credentialsOf(token, own)
  if (credentials === null) return remote
  const value = `Basic ${Buffer.from(credentials).toString('base64')}`
  return { ...remote, authorization: { origin: `${url.origin}/`, value } }
}

/** GitHub takes a token as the password of this user; GitLab, Gitea and Bitbucket take any user's. */
const TOKEN_USER = 'x-access-token'

function credentialsOf(token: string | undefined, own: { user: string; password: string }): string | null {
  if (token !== undefined && token !== '') return `${TOKEN_USER}:${token}`
  if (own.password !== '') return `${own.user}:${own.password}`
  return own.user === '' ? null : `${TOKEN_USER}:${own.user}`
}

function local(url: string, allowLocal: boolean): Remote {
  if (!allowLocal) throw refused(url, 'this platform does not read repositories of its own machine')
  return { url, protocols: 'file:https:http' }
}

function refused(repoUrl: string, why: string): BuildFailure {
  return new BuildFailure(`The repository address '${redactUrls(repoUrl)}' cannot be used: ${why}. Use https://host/owner/repository.`)
}

/** Blacks out user names and passwords in every address of a text. */
export function redactUrls(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@'"]*@/gi, '$1***@')
}
