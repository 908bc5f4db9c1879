/** The parts of an image reference: `registry.example.com/team/agent:1.2.3@sha256:…`. */
export interface ImageName {
  /** Registry and path, as they were written. */
  readonly repository: string
  readonly tag: string | null
  /** `sha256:` and 64 hexadecimal digits: the very image, whatever the tag names by now. */
  readonly digest: string | null
}

const DOCKER_HUB = 'docker.io'

export function parseImageName(uri: string): ImageName {
  const at = uri.indexOf('@')
  const named = at === -1 ? uri : uri.slice(0, at)
  const colon = named.lastIndexOf(':')
  // A colon before the last slash belongs to the registry's port.
  const tagged = colon > named.lastIndexOf('/')
  return {
    repository: tagged ? named.slice(0, colon) : named,
    tag: tagged ? named.slice(colon + 1) : null,
    digest: at === -1 ? null : uri.slice(at + 1),
  }
}

/** The registry that a repository lies in; a first part without a dot or a port is a user's name on Docker Hub. */
export function registryOf(repository: string): string {
  const [first = '', ...rest] = repository.split('/')
  const isRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  if (!isRegistry) return DOCKER_HUB
  return first === 'index.docker.io' ? DOCKER_HUB : first
}

/** One way to write a repository that can be written in several: `redis` is `docker.io/library/redis`. */
export function fullRepository(repository: string): string {
  const registry = registryOf(repository)
  const path = repository.replace(/^(index\.)?docker\.io\//, '')
  if (registry !== DOCKER_HUB) return repository
  return `${registry}/${path.includes('/') ? path : `library/${path}`}`
}

/**
 * Whether a recorded image is what a wanted reference asked for. The service adds the digest that a tag meant when it was deployed:
 * `agent:1@sha256:…` was asked for as `agent:1`.
 */
export function isImageOf(recorded: string, wanted: string): boolean {
  if (recorded === wanted) return true
  const [have, want] = [parseImageName(recorded), parseImageName(wanted)]
  if (have.digest === null || fullRepository(have.repository) !== fullRepository(want.repository)) return false
  if (want.digest !== null) return have.digest === want.digest
  return (have.tag ?? 'latest') === (want.tag ?? 'latest')
}
