import { hostname } from 'node:os'

/**
 * Reads an address that is given in an environment variable: a scheme, a host and maybe a port.
 * @returns it without a slash at its end; undefined when the variable is empty or not there.
 * @throws {Error} that names the variable and what is accepted.
 */
export function readAddress(environment: Readonly<Record<string, string | undefined>>, variable: string): string | undefined {
  const text = environment[variable]
  if (!text) return undefined
  const url = URL.parse(text)
  const plain =
    url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.username === '' && url.password === ''
  if (!plain || url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new Error(
      `${variable}: '${text.replace(/\/\/[^/@]*@/, '//***@')}' is not an address such as https://platform.example.com, without a path`,
    )
  }
  return url.origin
}

/** Where other nodes reach this one: as it listens, and by the machine's name when it listens everywhere. */
export function addressForOthers(listening: string, name = hostname()): string {
  const url = new URL(listening)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = name
  return url.origin
}
