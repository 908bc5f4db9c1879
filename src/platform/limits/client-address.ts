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

/** An IPv4 address in IPv6 clothes, in its own. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address
}
