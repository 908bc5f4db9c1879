import { normaliseRepoUrl } from '../parse/repo-url.ts'

/**
 * True for two addresses of one repository on a GitHub host, over https or ssh. Paths are compared without regard to case, as GitHub
 * does; a port, which may differ between the two protocols, does not count unless both have the same protocol.
 */
export function isSameRepository(a: string, b: string): boolean {
  const [first, second] = [partsOf(a), partsOf(b)]
  if (first === undefined || second === undefined) return normaliseRepoUrl(a) === normaliseRepoUrl(b)
  if (first.protocol === second.protocol && first.port !== second.port) return false
  return first.host === second.host && first.path === second.path
}

type Parts = { protocol: string; host: string; port: string; path: string }

function partsOf(address: string): Parts | undefined {
  const text = normaliseRepoUrl(address)
  const scpLike = /^[\w.-]+@([A-Za-z0-9.-]+):([^/\s].*)$/.exec(text)
  if (scpLike !== null) return parts({ protocol: 'ssh:', host: scpLike[1] ?? '', port: '', path: scpLike[2] ?? '' })
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, port, pathname } = new URL(text)
  // Of ssh, unlike https, the address keeps a port that is the default one.
  return parts({ protocol, host: hostname, port: protocol === 'ssh:' && port === '22' ? '' : port, path: pathname })
}

function parts({ protocol, host, port, path }: Parts): Parts {
  return { protocol, host: host.toLowerCase(), port, path: path.replace(/^\/+/, '').toLowerCase() }
}
