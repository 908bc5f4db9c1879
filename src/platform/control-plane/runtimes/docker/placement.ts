import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { ContainerInspectInfo } from 'dockerode'
import { StartFailure } from '../runtime.ts'
import { type Engine, EngineAddressError, type EngineEnvironment } from './engine.ts'

/** How agents in containers are reached. */
export interface Placement {
  /** The engine's network that they join, and are reached in by their own addresses; null: their port is published. */
  readonly network: string | null
  /** The address of the engine's machine at which ports are published. */
  readonly publish: string
  /** The host by which those ports are reached from here. */
  readonly host: string
}

/**
 * Settles it from `PLATFORM_CONTAINER_NETWORK`, `PLATFORM_CONTAINER_PUBLISH` and the engine's place. By default a port of 127.0.0.1, or,
 * on another machine, of the address by which that machine is known here; never of all addresses: an agent server asks for no key.
 * @throws {EngineAddressError} for a bad address.
 */
export async function settlePlacement(engine: Engine, env: EngineEnvironment): Promise<Placement> {
  const network = env['PLATFORM_CONTAINER_NETWORK'] || null
  const wanted = env['PLATFORM_CONTAINER_PUBLISH'] || null
  if (wanted !== null && isIP(wanted) === 0)
    throw new EngineAddressError(`PLATFORM_CONTAINER_PUBLISH is '${wanted}': give an IP address`)
  if (engine.remoteHost === null) {
    const publish = wanted ?? '127.0.0.1'
    return { network, publish, host: isEverywhere(publish) ? '127.0.0.1' : publish }
  }
  const publish = wanted ?? (await lookup(engine.remoteHost)).address
  return { network, publish, host: isEverywhere(publish) ? engine.remoteHost : publish }
}

function isEverywhere(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

/** The address of a container that runs. @throws {StartFailure} when it has none. */
export function addressOf(
  info: ContainerInspectInfo,
  { placement, port }: { placement: Placement; port: number },
): { host: string; port: number } {
  if (placement.network !== null) {
    const host = info.NetworkSettings.Networks[placement.network]?.IPAddress
    if (host === undefined || host === '')
      throw new StartFailure(`The agent's container has no address in the network ${placement.network}.`)
    return { host, port }
  }
  const published = info.NetworkSettings.Ports[`${port}/tcp`]?.[0]?.HostPort
  if (published === undefined) throw new StartFailure(`The port ${port} of the agent's container was not published.`)
  return { host: placement.host, port: Number(published) }
}
