import { BlockList, isIP } from 'node:net'

/** Tells the address of a request's client, looking behind proxies that are trusted. */
export type ClientAddress = (socketAddress: string | undefined, forwardedFor: string | null | undefined) => string

/**
 * The client's address: the connection's own, unless that is a trusted proxy's; then the last entry of `X-Forwarded-For` that is not a
 * trusted proxy either. Whatever stands before it may have been made up by the client.
 * @param trusted addresses and ranges: `10.0.0.0/8`, `::1`
 * @throws {Error} that names an entry which is neither.
 */
export function createClientAddress(trusted: readonly string[]): ClientAddress {
  const proxies = new BlockList()
  for (const entry of trusted) {
    const [address = '', bits] = entry.split('/')
    const version = isIP(address)
    const max = version === 6 ? 128 : 32
    if (version === 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= max))) {
      throw new Error(`'${entry}' is neither an IP address nor a range like 10.0.0.0/8`)
    }
    proxies.addSubnet(address, bits === undefined ? max : Number(bits), version === 6 ? 'ipv6' : 'ipv4')
  }
  const isTrusted = (address: string) => isIP(address) !== 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

  return (socketAddress, forwardedFor) => {
    let address = plain(socketAddress ?? '')
    const hops = (forwardedFor ?? '').split(',').map((hop) => plain(hop.trim()))
    while (isTrusted(address)) {
      const next = hops.pop()
      if (next === undefined || isIP(next) === 0) break
      address = next
    }
    return address
  }
}

/** An address without the port that some proxies add; an IPv4 address in IPv6 clothes, in its own. */
function plain(entry: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(entry) ?? []
  const address = (bracketed ?? dotted ?? entry).toLowerCase()
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address
}

/** Who an address belongs to: an IPv4 address is one client; an IPv6 client has the 2^64 addresses of its network, `2001:db8:0:7::/64`. */
export function networkOf(address: string): string {
  const [unscoped = ''] = address.split('%')
  if (isIP(unscoped) !== 6) return address
  // The URL parser writes an address in the one shortest way.
  const [head = '', tail] = new URL(`http://[${unscoped}]`).hostname.slice(1, -1).split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = tail === undefined ? first : [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last]
  return `${groups.slice(0, 4).join(':')}::/64`
}
