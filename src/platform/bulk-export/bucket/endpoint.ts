import { lookup as resolve } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** An address that a bucket's requests must not go to, and why. */
export class ForbiddenEndpoint extends Error {
  override readonly name = 'ForbiddenEndpoint'
}

/** Addresses that answer with a machine's own credentials in every cloud. */
const METADATA = new BlockList()
METADATA.addSubnet('169.254.0.0', 16, 'ipv4')
METADATA.addAddress('100.100.100.200', 'ipv4')
METADATA.addSubnet('fe80::', 10, 'ipv6')
METADATA.addAddress('fd00:ec2::254', 'ipv6')
METADATA.addAddress('fd20:ce::254', 'ipv6')

export interface EndpointRules {
  /** Link-local addresses, where clouds keep the credentials of their machines, may be asked too. */
  readonly allowLinkLocal: boolean
}

/**
 * Judges an endpoint as it is written. What its name leads to is judged again at each connection: see {@link guardedLookup}.
 * @throws {ForbiddenEndpoint}
 */
export function judgeEndpoint(endpointUrl: string, rules: EndpointRules): void {
  const url = URL.parse(endpointUrl)
  if (url === null || /[\0-\x20\x7f]/.test(endpointUrl)) throw new ForbiddenEndpoint('endpoint_url should be an address like https://s3.example.com')
  if (!['https:', 'http:'].includes(url.protocol)) throw new ForbiddenEndpoint('endpoint_url should begin with https:// or http://')
  if (url.username !== '' || url.password !== '') {
    throw new ForbiddenEndpoint('endpoint_url must not carry credentials: it is shown in answers; put them into credentials')
  }
  if (url.search !== '' || url.hash !== '') throw new ForbiddenEndpoint('endpoint_url must not have a query or a fragment')
  judgeHost(url.hostname.replace(/^\[|\]$/g, ''), rules)
}

function judgeHost(host: string, { allowLinkLocal }: EndpointRules): void {
  if (allowLinkLocal) return
  if (/^metadata\.google\.internal\.?$/i.test(host) || isMetadataAddress(host)) {
    throw linkLocal(`endpoint_url leads to ${host}`)
  }
}

function linkLocal(what: string): ForbiddenEndpoint {
  return new ForbiddenEndpoint(`${what}, a link-local address where clouds keep the credentials of their machines`)
}

function isMetadataAddress(address: string): boolean {
  const family = isIP(address.split('%')[0] ?? '')
  if (family === 0) return false
  // `BlockList` looks through IPv4 addresses that are written as IPv6 ones.
  return METADATA.check(address.split('%')[0] ?? '', family === 4 ? 'ipv4' : 'ipv6')
}

/** Resolves names as Node does, and refuses what must not be connected to: a name may lead elsewhere than when it was first looked at. */
export function guardedLookup(rules: EndpointRules): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, options, (error, address, family) => {
      if (error === null) {
        const addresses = typeof address === 'string' ? [address] : (address as unknown as { address: string }[]).map((one) => one.address)
        const forbidden = rules.allowLinkLocal ? undefined : addresses.find(isMetadataAddress)
        if (forbidden !== undefined) {
          callback(linkLocal(`${hostname} leads to ${forbidden}`) as NodeJS.ErrnoException, '', 4)
          return
        }
      }
      callback(error, address, family)
    })
  }
}
