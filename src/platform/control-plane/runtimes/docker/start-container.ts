import { setTimeout as sleep } from 'node:timers/promises'
import type { Container } from 'dockerode'
import type { BuildLog } from '../../build-log.ts'
import { writeAgentLine } from '../agent-log.ts'
import { waitUntilHealthy } from '../health.ts'
import { portOf } from '../image-environment.ts'
import { createTail } from '../lines.ts'
import { describeExit } from '../process-group.ts'
import { type AgentProcess, type ImageStart, type ProcessExit, StartFailure } from '../runtime.ts'
import { stopOnce } from '../stop-once.ts'
import { containerOptions } from './container.ts'
import { type ContainerEnd, endContainer, inspectOrNull, watchEnd } from './container-end.ts'
import { followLog } from './container-log.ts'
import { type Engine, type EngineEnvironment, isAway, reasonOf, statusOf } from './engine.ts'
import { type EngineFacts, readFacts } from './facts.ts'
import type { FetchedImage } from './image.ts'
import { addressOf, type Placement, settlePlacement } from './placement.ts'
import { askStubbornly } from './stubborn.ts'

const OUTPUT_LINES = 30
/** How long the end of a container is waited for after it was removed. */
const NEWS_MS = 5000

export interface ContainerStart {
  readonly engine: Engine
  readonly request: ImageStart
  readonly image: FetchedImage
  readonly installationId: string
  readonly env: EngineEnvironment
  readonly log: BuildLog
  readonly signal: AbortSignal
  readonly pollMs: number
}

/**
 * Makes and starts the container of an agent, and resolves when the agent answers; nothing is left of it otherwise.
 * @throws {StartFailure} that says why it does not.
 */
export async function startContainer(start: ContainerStart): Promise<AgentProcess> {
  const { engine, image, log, signal } = start
  const stubborn = { engine, log, signal }
  const facts = await askStubbornly(() => readFacts(engine, signal), stubborn)
  const placement = await settlePlacement(engine, start.env)
  const options = containerOptions({ ...start, placement, facts })
  try {
    const container = await askStubbornly(() => create(engine, options), stubborn)
    await askStubbornly(() => begin(container, engine), stubborn)
    return await untilItAnswers({ ...start, container, placement })
  } catch (error) {
    // By its name: it may have been made although its answer never came.
    const container = engine.docker.getContainer(options.name ?? '')
    await endContainer({ engine, container, graceMs: 0 }).catch((left: Error) => {
      log.write('WARNING', `The container is left behind, and is removed later: ${left.message}`)
    })
    throw explain(error, { image, facts })
  }
}

async function create(engine: Engine, options: ReturnType<typeof containerOptions>): Promise<Container> {
  try {
    return await engine.docker.createContainer({ ...options, ...engine.limited() })
  } catch (error) {
    if (isAway(error)) throw error
    const made =
      statusOf(error) === 409 ? await inspectOrNull({ engine, container: engine.docker.getContainer(options.name ?? '') }) : null
    // The answer of an earlier attempt was lost.
    if (made !== null) return engine.docker.getContainer(made.Id)
    throw new StartFailure(`The container engine makes no container of the image: ${reasonOf(error)}.`)
  }
}

async function begin(container: Container, engine: Engine): Promise<void> {
  try {
    await container.start(engine.limited())
  } catch (error) {
    if (isAway(error)) throw error
    // An earlier attempt has started it.
    if (statusOf(error) !== 304) throw new StartFailure(`The container could not be started: ${reasonOf(error)}.`)
  }
}

interface Begun extends ContainerStart {
  readonly container: Container
  readonly placement: Placement
}

async function untilItAnswers({ engine, container, placement, request, log, signal, pollMs }: Begun): Promise<AgentProcess> {
  const tail = createTail(OUTPUT_LINES)
  const ended = watchEnd({ engine, container })
  const read = followLog({ engine, container, ended, onLine: (line, stream) => tail.push(writeAgentLine(log, line, stream)) })
  try {
    const info = await askStubbornly(() => container.inspect(engine.limited(signal)), { engine, log, signal })
    // Its port is gone with it.
    if (!info.State.Running) throw new StartFailure(`The agent ${describeExit(await ended)} before it answered.`)
    const address = addressOf(info, { placement, port: portOf(request) })
    await waitUntilHealthy({ ...address, pollMs, signal, exited: ended })
    log.write('INFO', `The agent answers (container ${container.id.slice(0, 12)}, ${address.host}:${address.port})`)
    return agentProcess({ engine, container, address, ended, read, log })
  } catch (error) {
    const end = await Promise.race([ended, sleep(0, null)])
    // What it printed comes before the sentence about its end.
    if (end !== null) await Promise.race([read, sleep(NEWS_MS)])
    if (!(error instanceof StartFailure)) throw error
    throw new StartFailure(error.message + hintOf(end), tail.lines())
  }
}

function describeEnd(end: ContainerEnd): string {
  return describeExit(end) + (end.outOfMemory ? ' (out of memory)' : '')
}

/** What more there is to say about the end of an agent that never answered. */
function hintOf(end: ContainerEnd | null): string {
  if (end === null) return ''
  if (end.outOfMemory) return ' It ran out of memory: see memory_limit_mb in resource_spec.'
  // As shells and init processes say it.
  return end.code === 126 || end.code === 127 ? ' The command of the image could not be run: its log tells why.' : ''
}

/** An image for another kind of machine fails in many ways; only this one says what it is. */
function explain(error: unknown, { image, facts }: { image: FetchedImage; facts: EngineFacts }): unknown {
  if (!(error instanceof StartFailure)) return error
  const [os, architecture] = image.platform.split('/')
  if (`${os}/${architecture}` === facts.platform) return error
  return new StartFailure(
    `${error.message} The image is made for ${image.platform}, and the engine's machine is ${facts.platform}.`,
    error.output,
  )
}

interface Running {
  readonly engine: Engine
  readonly container: Container
  readonly address: AgentProcess['address']
  readonly ended: Promise<ContainerEnd>
  readonly read: Promise<void>
  readonly log: BuildLog
}

function agentProcess({ engine, container, address, ended, read, log }: Running): AgentProcess {
  const { stop, isStopping } = stopOnce(async (graceMs) => {
    await endContainer({ engine, container, graceMs })
    await Promise.race([exited, sleep(NEWS_MS, undefined, { ref: false })])
  })
  const exited = ended.then(async (end): Promise<ProcessExit> => {
    await read
    log.write(isStopping() ? 'INFO' : 'ERROR', `The agent ${describeEnd(end)}`)
    // What cannot be removed now has no row soon, and is found as a stray.
    if (!isStopping()) await endContainer({ engine, container, graceMs: 0 }).catch(() => undefined)
    return { code: end.code, signal: end.signal }
  })
  return {
    address,
    reference: `docker:${container.id}`,
    exited,
    stop,
  }
}
