import type Docker from 'dockerode'

/** Removes all containers of an engine with their volumes, as far as the engine still answers. */
export async function removeContainers(docker: Docker): Promise<void> {
  const containers = await docker.listContainers({ all: true }).catch(() => [])
  await Promise.all(
    containers.map(({ Id }) =>
      docker
        .getContainer(Id)
        .remove({ force: true, v: true })
        .catch(() => undefined),
    ),
  )
}
