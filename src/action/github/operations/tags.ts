import { objectSchema } from '../answers.ts'
import type { Github } from '../github.ts'
import { isNotFound, type Repository } from './repository.ts'

/** An annotated tag may name another one. */
const TAG_DEPTH = 8
const TAG_PREFIX = 'refs/tags/'

export function tagOperations({ owner, repo, send }: Repository): Pick<Github, 'commitOfTag'> {
  return {
    commitOfTag: async (tag, signal) => {
      const name = tag.startsWith(TAG_PREFIX) ? tag.slice(TAG_PREFIX.length) : tag
      const request = {
        operation: `reading the tag '${name}'`,
        permission: 'contents: read',
        schema: objectSchema,
        signal,
      } as const
      let found
      try {
        const route = 'GET /repos/{owner}/{repo}/git/ref/{ref}'
        found = await send({ ...request, route, parameters: { owner, repo, ref: `tags/${name}` } })
      } catch (error) {
        if (isNotFound(error)) return null
        throw error
      }
      let { object } = found.body
      for (let depth = 0; object.type === 'tag' && depth < TAG_DEPTH; depth++) {
        const route = 'GET /repos/{owner}/{repo}/git/tags/{tag_sha}'
        const { body } = await send({ ...request, route, parameters: { owner, repo, tag_sha: object.sha } })
        object = body.object
      }
      return object.type === 'commit' ? object.sha : null
    },
  }
}
