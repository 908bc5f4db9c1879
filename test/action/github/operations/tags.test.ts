import { describe, expect, it } from 'vitest'
import { tagOperations } from '../../../../src/action/github/operations/tags.ts'
import { httpFailure } from '../../../support/request-failure.ts'
import { githubFailure } from '../support.ts'
import { fakeSend, HERE, type Reply, signal } from './support.ts'

describe('a tag', () => {
  const ASKED = { operation: "reading the tag 'v1'", permission: 'contents: read' }
  const object = (type: string, sha: string): Reply => ({ body: { object: { type, sha } } })
  const REF = { ...ASKED, route: 'GET /repos/{owner}/{repo}/git/ref/{ref}', parameters: { ...HERE, ref: 'tags/v1' } }

  it.each(['v1', 'refs/tags/v1'])('written as %s is followed to its commit', async (tag) => {
    const { asked, here } = fakeSend(object('tag', 'one'), object('commit', 'two'))
    expect(await tagOperations(here).commitOfTag(tag, signal)).toBe('two')
    const route = 'GET /repos/{owner}/{repo}/git/tags/{tag_sha}'
    expect(asked).toEqual([REF, { ...ASKED, route, parameters: { ...HERE, tag_sha: 'one' } }])
  })

  it.each([
    [8, 'end'],
    [9, null],
  ])('of %s tags names %s', async (tags, expected) => {
    const chain = Array.from({ length: tags }, (_, index) => object('tag', `${index}`))
    const { here } = fakeSend(...chain, object('commit', 'end'))
    expect(await tagOperations(here).commitOfTag('v1', signal)).toBe(expected)
  })

  it('of files names no commit', async () => {
    expect(await tagOperations(fakeSend(object('tree', 'x')).here).commitOfTag('v1', signal)).toBeNull()
  })

  it('that is not there is none; any other failure is one', async () => {
    expect(await tagOperations(fakeSend(githubFailure(httpFailure(404))).here).commitOfTag('v1', signal)).toBeNull()
    const refused = githubFailure(httpFailure(403))
    await expect(tagOperations(fakeSend(refused).here).commitOfTag('v1', signal)).rejects.toBe(refused)
  })
})
