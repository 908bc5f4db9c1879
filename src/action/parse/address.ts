import type { Parsed } from './parsed.ts'

export const ADDRESS_RULE =
  'an https address without user name, password, query and fragment, such as https://langsmith.example.com/api-host'

/**
 * Reads the address of a service, the input `control-plane-url` unless `input` says otherwise. Plain http is for loopback and private
 * networks: elsewhere the key would travel in the clear.
 */
export function parseAddress(text: string, input = 'control-plane-url'): Parsed<{ url: string; warning?: string }> {
  const url = URL.parse(text)
  if (url === null) return notAnAddress(text)
  if (!isHttp(url)) return notHttp(text)
  if (url.username !== '' || url.password !== '')
    return { problem: 'carries credentials', fix: 'take them out: the key goes into api-key' }
  if (url.search !== '' || url.hash !== '') return { problem: 'has a query or a fragment', fix: 'end it after the path' }
  const path = url.pathname.replace(/\/+$/, '')
  const version = /\/api\/v1(\/bulk-exports)?$|\/v[12](\/deployments)?$/.exec(path)
  if (version !== null) return { problem: `ends with ${version[0]}`, fix: 'leave that out: the action adds it' }
  const address = `${url.origin}${path}`
  if (url.protocol === 'https:' || isLoopback(url.hostname)) return { value: { url: address } }
  return { value: { url: address, warning: `${input} is plain http: the API key travels unencrypted to ${url.host}` } }
}

export function isHttp({ protocol }: URL): boolean {
  return protocol === 'https:' || protocol === 'http:'
}

/** The problem of an address of another scheme, or of one without a scheme whose host looks like one: `localhost:8787`. */
export function notHttp(text: string): { problem: string; fix?: string } {
  return text.includes('://') ? { problem: 'is neither https nor http' } : notAnAddress(text)
}

export function notAnAddress(text: string): { problem: string; fix?: string } {
  const url = text.includes('://') ? null : URL.parse(`https://${text}`)
  // What carries credentials is not shown once more.
  if (url === null || text.includes('@')) return { problem: 'is not an address' }
  return { problem: 'is not an address', fix: `write ${isLoopback(url.hostname) ? 'http' : 'https'}://${text}` }
}

/** The scheme, or the slashes of an address without one. An address of https may lack them, and have them the wrong way round. */
const BEFORE_USER = /^(?:\s*https?:[\\/]*|(?:[^/?#@:]*:)?\/\/)/i
const USER = /^([^/?#:]*)(?::([^/?#]*))?@/
/** A password with an unescaped `/`, `?` or `#`. What begins with digits and ends there is a port. */
const USER_OF_ODD_PASSWORD = /^([^/?#:@[\]]*):(?!\d*(?:[/?#]|$))(.*)@/s
/** The end of an image's name, which is no host. */
const DIGEST = /@sha\d+:[0-9a-f]+$/i

/** An address in parts: its scheme and slashes, the user, the password where there is one, and what follows on the @. */
type AddressWithUser = { before: string; user: string; password: string | undefined; after: string }

/**
 * Reads as whom an address is asked, with a scheme or without one: `user:password@proxy:3128`. Undefined where it does not say, and
 * for `git@github.com:acme/agents`: a name in front of a host and a colon is how ssh is told a place.
 */
export function readUser(address: string): AddressWithUser | undefined {
  const before = BEFORE_USER.exec(address)?.[0] ?? ''
  const rest = address.slice(before.length)
  const searched = rest.replace(DIGEST, '')
  const [found, user = '', password] = USER.exec(searched) ?? USER_OF_ODD_PASSWORD.exec(searched) ?? []
  if (found === undefined) return undefined
  const after = rest.slice(found.length)
  const isPlaceOfSsh = before === '' && password === undefined && /^[^/?#]*:/.test(after)
  return isPlaceOfSsh ? undefined : { before, user, password, after }
}

/** An address as it may be shown: no credentials, no query. */
export function showAddress(text: string): string {
  const { before, after } = readUser(text) ?? {}
  const bare = after === undefined ? text : `${before}***@${after}`
  return bare.replace(/[?#].*$/s, '?***')
}

/** True for a host that is this machine. `hostname` is that of a `URL`: an IPv6 address stands in brackets. */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  )
}
