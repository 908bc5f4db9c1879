import { answering, type Engine } from './engine.ts'

/** What an engine tells of itself and its machine. */
export interface EngineFacts {
  readonly cpus: number
  /** Like `linux/amd64`. */
  readonly platform: string
  readonly podman: boolean
  /** Whether it can put a small init process before the agent. */
  readonly init: boolean
}

export async function readFacts(engine: Engine, signal: AbortSignal): Promise<EngineFacts> {
  const info = await answering(engine).info(engine.limited(signal))
  const version = await answering(engine).version(engine.limited(signal))
  const components = (version as { Components?: { Name?: string }[] }).Components ?? []
  return {
    cpus: info.NCPU ?? 1,
    platform: `${version.Os}/${version.Arch}`,
    podman: components.some(({ Name }) => Name?.includes('Podman') === true),
    init: (info.InitBinary ?? '') !== '',
  }
}
