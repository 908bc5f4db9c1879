import { describe, expect, it } from 'vitest'
import { keepComment, type Kept, markerOf } from '../../../src/action/github/comment.ts'
import type { Github } from '../../../src/action/github/github.ts'
import { ACTIONS_BOT, githubFaults } from '../../support/github-double.ts'
import { type Connected, failureOf, withGithub } from './support.ts'

const KEY = 'staging'
const bodyOf = (text: string): string => `${markerOf(KEY)}\n${text}`

async function keep(
  { github, signal }: Pick<Connected, 'github' | 'signal'>,
  text: string,
  options: { create?: boolean; isNewer?: (body: string) => boolean } = {},
): Promise<Kept> {
  return await keepComment({
    github,
    pullRequest: 7,
    key: KEY,
    body: bodyOf(text),
    create: true,
    isNewer: () => false,
    signal,
    ...options,
  })
}

/** The double, with the pull request 7. */
const withPull = (body: (connected: Connected) => Promise<void>): Promise<void> =>
  withGithub({}, async (connected) => {
    connected.double.addPullRequest({ number: 7 })
    await body(connected)
  })

describe.concurrent('the comment', () => {
  it('is created, left alone when it is the same, and brought up to date', () =>
    withPull(async (connected) => {
      const { double } = connected
      expect(await keep(connected, 'one')).toBe('created')
      // GitHub may give line ends of its own.
      const [comment] = double.state.comments
      if (comment !== undefined) comment.body = `${comment.body.replaceAll('\n', '\r\n')}\r\n`
      expect(await keep(connected, 'one')).toBe('unchanged')
      expect(await keep(connected, 'two')).toBe('updated')
      expect(double.state.comments).toMatchObject([{ body: bodyOf('two'), edits: 1 }])
    }))

  it('is found behind hundreds of others', () =>
    withPull(async (connected) => {
      const { double } = connected
      for (let index = 0; index < 150; index++)
        double.addComment({ pullRequest: 7, author: { login: 'octocat', type: 'User' }, body: `number ${index}` })
      const id = double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: bodyOf('old') })
      expect(await keep(connected, 'new')).toBe('updated')
      expect(double.state.comments.find((comment) => comment.id === id)?.body).toBe(bodyOf('new'))
    }))

  it('is one for each key', () =>
    withPull(async (connected) => {
      connected.double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: `${markerOf('staging-2')}\nother` })
      expect(await keep(connected, 'one')).toBe('created')
      expect(connected.double.state.comments).toHaveLength(2)
    }))

  it('is not begun where there is nothing to tell', () =>
    withPull(async (connected) => {
      expect(await keep(connected, 'removed', { create: false })).toBe('left')
      expect(connected.double.state.comments).toEqual([])
      await keep(connected, 'one')
      expect(await keep(connected, 'removed', { create: false })).toBe('updated')
    }))

  it('stays when it tells of something newer', () =>
    withPull(async (connected) => {
      await keep(connected, 'newer')
      expect(await keep(connected, 'older', { isNewer: (body) => body.includes('newer') })).toBe('left')
    }))

  it('that only quotes the marker is another one', () =>
    withPull(async (connected) => {
      connected.double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: `> ${bodyOf('quoted')}` })
      expect(await keep(connected, 'one')).toBe('created')
    }))

  it('is not taken from a person who is called as the app is', () =>
    withPull(async (connected) => {
      const author = { login: 'github-actions', type: 'User' } as const
      connected.double.addComment({ pullRequest: 7, author, body: bodyOf('forged') })
      expect(await keep(connected, 'one')).toBe('created')
      expect(connected.double.state.comments[0]).toMatchObject({ body: bodyOf('forged'), edits: 0 })
    }))

  it('is written again when somebody deletes it meanwhile', () =>
    withPull(async (connected) => {
      connected.double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: bodyOf('old') })
      connected.double.on({ method: 'PATCH' }, githubFaults.notFound)
      expect(await keep(connected, 'new')).toBe('updated')
      expect(connected.double.state.comments).toMatchObject([{ body: bodyOf('new') }])
    }))

  it('is not written twice when the answer to the first is lost', () =>
    withPull(async (connected) => {
      connected.double.on({ method: 'POST', path: /comments$/ }, { kind: 'reset', when: 'after' })
      expect(await keep(connected, 'one')).toBe('created')
      connected.double.state.comments.length = 0
      connected.double.on({ method: 'POST', path: /comments$/ }, { kind: 'reset', when: 'before' })
      expect(await keep(connected, 'one')).toBe('created')
      expect(connected.double.state.comments).toHaveLength(1)
    }))

  it('is left alone when nobody says whose token this is', () =>
    withPull(async (connected) => {
      connected.double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: bodyOf('old') })
      connected.double.on({ path: /graphql/ }, githubFaults.badCredentials)
      expect((await failureOf(keep(connected, 'new'))).operation).toBe('finding out whose token this is')
      expect(connected.double.state.comments).toMatchObject([{ edits: 0 }])
    }))
})

describe.concurrent('two steps at the same moment', () => {
  it('end with the older comment, whoever is faster', () =>
    withPull(async (connected) => {
      const { github, double } = connected
      // Both have looked before either writes.
      let looked = 0
      const both = Promise.withResolvers<void>()
      const together: Github = {
        ...github,
        createComment: async (...options) => {
          if (++looked === 2) both.resolve()
          await both.promise
          return await github.createComment(...options)
        },
      }
      const kept = await Promise.all(['one', 'two'].map((text) => keep({ ...connected, github: together }, text)))
      expect(double.state.comments).toHaveLength(1)
      expect(kept.toSorted()).not.toContain('left')
      expect([bodyOf('one'), bodyOf('two')]).toContain(double.state.comments[0]?.body)
    }))

  it('leave nothing behind when one of them was stopped in between', () =>
    withPull(async (connected) => {
      const { double } = connected
      for (const text of ['one', 'two', 'three']) double.addComment({ pullRequest: 7, author: ACTIONS_BOT, body: bodyOf(text) })
      const [first] = double.state.comments
      expect(await keep(connected, 'four')).toBe('updated')
      expect(double.state.comments).toMatchObject([{ id: first?.id, body: bodyOf('four') }])
    }))
})

describe('the marker', () => {
  it.each(['a-->b', 'a -- b', 'ends-', '--', '<!-- x', 'a\nb', 'ü/ö', '\ud800'])(
    'of %j cannot end the comment that it is in',
    (key) => {
      const marker = markerOf(key)
      expect(marker).toMatch(/^<!-- [^\n]* -->$/)
      expect(marker.slice(4, -3)).not.toMatch(/--|[<>]/)
      expect(marker.slice(5, -4)).not.toMatch(/-$/)
    },
  )

  it('tells keys apart', () => {
    expect(new Set(['a--b', 'a-b', 'a%2D-b', 'A-b'].map(markerOf)).size).toBe(4)
  })
})
