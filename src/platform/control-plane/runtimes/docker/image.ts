import { addAbortSignal, type Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fullRepository, type ImageName, parseImageName, registryOf } from '../../../../contract/image.ts'
import type { BuildLog } from '../../build-log.ts'
import { FETCH_LIMIT_MS, StartFailure } from '../runtime.ts'
import { type Engine, type EngineEnvironment, isAway, reasonOf, statusOf } from './engine.ts'
import { registryCredentials } from './registry-credentials.ts'
import { askStubbornly } from './stubborn.ts'

const ATTEMPTS = 4
const FIRST_PAUSE_MS = 1000

/** An image that the engine has. */
export interface FetchedImage {
  /** The engine's own name for it: what a tag means cannot change under the container. */
  readonly id: string
  /** The reference as it was given, with its digest. */
  readonly exactUri: string
  /** What it is made for, like `linux/amd64`. */
  readonly platform: string
  readonly env: readonly string[]
}

export interface FetchOptions {
  readonly engine: Engine
  readonly uri: string
  /** Where the logins of registries are found. */
  readonly env: EngineEnvironment
  readonly log: BuildLog
  readonly signal: AbortSignal
}

/**
 * Makes the engine have an image. A digest that it has is not asked for again; a tag always is: it may have moved. Trouble on the way to
 * the registry is tried again.
 * @throws {StartFailure} when there is no such image, the registry does not give it, or it took too long.
 */
export async function fetchImage({ signal, ...options }: FetchOptions): Promise<FetchedImage> {
  const limit = AbortSignal.timeout(FETCH_LIMIT_MS)
  try {
    return await fetchWithin({ ...options, signal: AbortSignal.any([signal, limit]) })
  } catch (error) {
    signal.throwIfAborted()
    if (limit.aborted && !(error instanceof StartFailure))
      throw new StartFailure(`The image ${options.uri} was not there after ${FETCH_LIMIT_MS / 60_000} minutes.`)
    throw error
  }
}

async function fetchWithin(options: FetchOptions): Promise<FetchedImage> {
  const { uri, log } = options
  const name = parseImageName(uri)
  // It becomes a part of paths of the engine's API.
  if (!isWellFormed(name)) throw new StartFailure(`'${uri}' names no image: write registry/path:tag, or registry/path@sha256:….`)
  const exact = name.digest === null ? null : `${name.repository}@${name.digest}`
  const known = exact === null ? null : await inspect(options, exact)
  if (known !== null) return describe(known, uri)
  log.write('INFO', `Pulling ${uri}`)
  const local = exact === null ? await inspect(options, uri) : null
  const homeMade = local !== null && isHomeMade(local) ? local : null
  let digest: string | null
  try {
    digest = await pullStubbornly(options, { name, attempts: homeMade === null ? ATTEMPTS : 1 })
  } catch (error) {
    options.signal.throwIfAborted()
    if (homeMade === null) throw error
    log.write(
      'WARNING',
      `${uri} is in no registry that answers: taking the image of that name that was made on the engine's machine (${homeMade.Id})`,
    )
    return describe(homeMade, uri)
  }
  const found = await inspect(options, exact ?? uri)
  if (found === null)
    throw new StartFailure(`The engine has pulled ${uri}, and does not have it: was it removed at the same moment?`)
  const image = describe(found, name.digest === null ? withDigest(uri, digest ?? recordedDigest(found, name)) : uri)
  log.write('INFO', `Pulled ${image.exactUri} (${image.platform})`)
  return image
}

function isWellFormed({ repository, tag, digest }: ImageName): boolean {
  const parts = repository.split('/')
  const path = parts.every((part, index) => /^[\w-]+([.-]+[\w-]+)*$/.test(index === 0 ? part.replace(/:\d+$/, '') : part))
  return path && /^\w[\w.-]{0,127}$/.test(tag ?? 'latest') && /^sha256:[0-9a-f]{64}$/.test(digest ?? `sha256:${'0'.repeat(64)}`)
}

type Inspected = Awaited<ReturnType<ReturnType<Engine['docker']['getImage']>['inspect']>>

/** Null when the engine has no such image. */
async function inspect({ engine, log, signal }: FetchOptions, reference: string): Promise<Inspected | null> {
  const ask = () => ended(engine.docker.getImage(reference).inspect(), engine.limited(signal).abortSignal)
  try {
    return await askStubbornly(ask, { engine, log, signal })
  } catch (error) {
    if (statusOf(error) === 404) return null
    if (error instanceof StartFailure) throw error
    throw refusalOf(reference, error) ?? new StartFailure(`The engine does not tell of ${reference}: ${reasonOf(error)}.`)
  }
}

/** For operations that take no signal of their own. */
function ended<T>(asked: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    asked.then(resolve, reject)
  })
}

function describe(image: Inspected, exactUri: string): FetchedImage {
  const variant = (image as { Variant?: string }).Variant
  const platform = [image.Os, image.Architecture, variant].filter((part) => part !== undefined && part !== '').join('/')
  return { id: image.Id, exactUri, platform, env: image.Config.Env ?? [] }
}

/** It came from no registry: a digest of one would say so. Podman gives what it builds a digest of `localhost`. */
function isHomeMade(image: Inspected): boolean {
  return (image.RepoDigests ?? []).every((digest) => digest.startsWith('localhost/'))
}

function withDigest(uri: string, digest: string | null): string {
  return digest === null ? uri : `${uri}@${digest}`
}

/** The digest under which the engine knows the image in this repository. */
function recordedDigest(image: Inspected, { repository }: ImageName): string | null {
  const names = (image.RepoDigests ?? []).map(parseImageName)
  return names.find((name) => fullRepository(name.repository) === fullRepository(repository))?.digest ?? null
}

/** @returns the digest that the registry told, where it did. */
async function pullStubbornly(
  options: FetchOptions,
  { name, attempts }: { name: ImageName; attempts: number },
): Promise<string | null> {
  const { uri, log, signal } = options
  for (let attempt = 1; ;) {
    try {
      return await pull(options, name)
    } catch (error) {
      signal.throwIfAborted()
      const refusal = refusalOf(uri, error)
      if (refusal !== null) throw refusal
      const away = isAway(error)
      // An engine that is away has not tried: that is waited for as long as there is time.
      if (!away && attempt === attempts)
        throw new StartFailure(`The image ${uri} could not be pulled in ${attempts} attempts: ${reasonOf(error)}.`)
      log.write(
        'WARNING',
        `${away ? 'The container engine does not answer' : `Pulling ${uri} failed`}; trying again: ${reasonOf(error)}`,
      )
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1), undefined, { signal })
      if (!away) attempt += 1
    }
  }
}

async function pull({ engine, env, log, signal }: FetchOptions, { repository, tag, digest }: ImageName): Promise<string | null> {
  const authconfig = await registryCredentials(registryOf(repository), env).catch((error: Error) => {
    log.write('WARNING', `Without a login for the registry: ${error.message}`)
    return undefined
  })
  // Types know neither: the digest goes where the tag does.
  const options = {
    fromImage: repository,
    tag: digest ?? tag ?? 'latest',
    abortSignal: signal,
    ...(authconfig === undefined ? {} : { authconfig }),
  }
  const stream = await engine.docker.createImage(options)
  let told: string | null = null
  for await (const { status, error, errorDetail } of readProgress(stream, signal)) {
    const fault = errorDetail?.message ?? error
    // Told in a stream that began well: as if it had been the answer's status.
    if (fault !== undefined) throw Object.assign(new Error(fault), { statusCode: 500 })
    told = /^Digest: (sha256:[0-9a-f]{64})$/.exec(status ?? '')?.[1] ?? told
  }
  return told
}

interface Progress {
  readonly status?: string
  readonly error?: string
  readonly errorDetail?: { readonly message?: string }
}

/** The lines of a pull. @throws {Error} when the stream breaks off. */
async function* readProgress(stream: NodeJS.ReadableStream, signal: AbortSignal): AsyncGenerator<Progress> {
  const readable = addAbortSignal(signal, stream as Readable)
  let text = ''
  for await (const chunk of readable.setEncoding('utf8')) {
    text += chunk as string
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Progress
  }
}

/** The registry's word that will not change by asking again. */
function refusalOf(uri: string, error: unknown): StartFailure | null {
  if (isAway(error)) return null
  const reason = reasonOf(error)
  const registry = registryOf(parseImageName(uri).repository)
  if (
    /no matching manifest|does not match the (specified|expected) platform|no image found in (image index|manifest list)/i.test(
      reason,
    )
  ) {
    return new StartFailure(`The image ${uri} is not made for the engine's machine: ${reason}.`)
  }
  if (/manifest unknown|manifest for .* not found|not found: manifest|name unknown|repository name not known/i.test(reason)) {
    return new StartFailure(`There is no image ${uri} in the registry ${registry}: ${reason}.`)
  }
  if (
    /unauthori[sz]ed|authentication required|denied|no basic auth credentials|forbidden|invalid username\/password/i.test(reason)
  ) {
    const advice = "the login is read from Docker's config.json on the platform's machine (DOCKER_CONFIG)"
    return new StartFailure(`The registry ${registry} refuses ${uri}: ${reason}. Check that the image exists; ${advice}.`)
  }
  if (statusOf(error) === 400 || /invalid reference format|invalid tag|repository name must be lowercase/i.test(reason)) {
    return new StartFailure(`'${uri}' names no image: ${reason}.`)
  }
  return null
}
