/** Tokens that open private repositories, by the beginning of their addresses. */
export interface GitTokens {
  /** The token for a repository, or undefined when there is none for it. */
  tokenFor(repoUrl: string): string | undefined
}

interface Entry {
  readonly origin: string
  /** Ends in a slash, so that `/acme` does not open `/acme-private`. */
  readonly path: string
  readonly token: string
}

/** `PLATFORM_GIT_TOKENS` is wrong. The text never holds a token. */
export class GitTokensError extends Error {}

/**
 * Reads the environment variable `PLATFORM_GIT_TOKENS`: entries separated by lines or commas, each `<where>=<token>`.
 *
 * ```
 * github.com=ghp_…                        every repository of https://github.com
 * https://github.com/acme=github_pat_…    those below https://github.com/acme/
 * https://git.example.com:8443/team/app=… one repository, with or without .git
 * http://127.0.0.1:3000=…                 plain http: of this machine only
 * ```
 *
 * The longest beginning that fits wins. A token is sent as the password of the user `x-access-token` to the repository's own origin alone,
 * in an environment variable of the git process: it is in no argument, no file and no log. A user name or password in `repo_url` itself
 * counts only where no entry fits.
 * @throws {GitTokensError} that tells which entry is malformed, by its place and without its token.
 */
export function parseGitTokens(text: string | undefined): GitTokens {
  const entries = (text ?? '')
    .split(/[\n,]/)
    .map((entry, index) => ({ entry: entry.trim(), place: index + 1 }))
    .filter(({ entry }) => entry !== '' && !entry.startsWith('#'))
    .map(parseEntry)
    .toSorted((a, b) => b.path.length - a.path.length)
  return {
    tokenFor: (repoUrl) => {
      const url = URL.parse(repoUrl)
      if (url === null) return undefined
      const path = directoryOf(url.pathname)
      return entries.find((entry) => entry.origin === url.origin && path.startsWith(entry.path))?.token
    },
  }
}

function parseEntry({ entry, place }: { entry: string; place: number }): Entry {
  // A path may hold an equals sign, a host cannot, and a token may end in some: the first one behind the host's path separates.
  const cut = entry.indexOf('=')
  const where = entry.slice(0, Math.max(cut, 0)).trim()
  const token = entry.slice(cut + 1).trim()
  if (cut < 1 || where === '') throw fault(place, 'should look like host=token or https://host/path=token')
  if (token === '') throw fault(place, `names no token for ${where}`)
  if (/[\s\x00-\x1f\x7f]/.test(token)) throw fault(place, `has a token for ${where} with spaces or control characters in it`)
  const url = URL.parse(where.includes('://') ? where : `https://${where}`)
  if (url === null || url.host === '') throw fault(place, `names '${where}', which is no host and no address`)
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw fault(place, 'should have nothing but a host and a path before the equals sign')
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) {
    throw fault(place, `would send a token to ${where}: only https is allowed, and http to this machine`)
  }
  return { origin: url.origin, path: directoryOf(url.pathname), token }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** `/acme/app`, `/acme/app/` and `/acme/app.git` are the same repository. */
function directoryOf(pathname: string): string {
  return `${pathname.replace(/\/+$/, '').replace(/\.git$/, '')}/`
}

function fault(place: number, what: string): GitTokensError {
  return new GitTokensError(`PLATFORM_GIT_TOKENS: entry ${place} ${what}.`)
}
