import type { Parsed } from './parsed.ts'

export const ADDRESS_RULE =
  'an https address without user name, password, query and fragment, such as https://langsmith.example.com/api-host'

/**
 * Reads the address of a service, the input `control-plane-url` unless `input` says otherwise. Plain http is for loopback and private
 * networks: elsewhere the key would travel in the clear.
 */
export function parseAddress(text: string, input = 'control-plane-url'): Parsed<{ url: string; warning?: string }> {
  if (!URL.canParse(text))
    return { problem: 'is not an address', ...(text.includes('://') ? {} : { fix: `write https://${text}` }) }
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return { problem: 'is neither https nor http' }
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

/** An address as it may be shown: no credentials, no query. */
export function showAddress(text: string): string {
  return text.replace(/\/\/[^/?#]*@/, '//***@').replace(/[?#].*$/s, '?***')
}

/** True for a host that is this machine. `hostname` is that of a `URL`: an IPv6 address stands in brackets. */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  )
}
