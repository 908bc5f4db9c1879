import { describe, expect, it } from 'vitest'
import { keepComment, type Kept, markerOf } from '../../../src/action/github/comment.ts'
import type { GithubFailure } from '../../../src/action/github/failure.ts'
import type { Comment } from '../../../src/action/github/github.ts'
import { httpFailure, requestFailure } from '../../support/request-failure.ts'
import { githubFailure } from './support.ts'

const MARKER = markerOf('staging')
const BODY = `${MARKER}\nnew`
const BOT = { author: 'app[bot]', authorIsBot: true }

const failure = (status: number | null, ambiguous = false): GithubFailure =>
  githubFailure(status === null ? requestFailure({ ambiguous }) : httpFailure(status, { ambiguous }))

const comment = (id: number, changes: Partial<Comment> = {}): Comment => ({
  id,
  body: `${MARKER}\nold`,
  url: `https://c/${id}`,
  ...BOT,
  ...changes,
})

type Scene = {
  comments?: Comment[]
  viewer?: { login: string; isBot: boolean }
  create?: boolean
  isNewer?: (body: string) => boolean
  signal?: AbortSignal
  /** What a write throws first, by its name. */
  throws?: { createComment?: Error; updateComment?: Error }
  /** What another step does just before the comment is written. */
  meanwhile?: (comments: Comment[]) => void
}

/** Keeps the comment of a pull request that has `comments`, and tells every step. */
async function keep(scene: Scene): Promise<{ kept: Kept; steps: string[]; comments: Comment[] }> {
  const comments = scene.comments ?? []
  const steps: string[] = []
  const throws = { ...scene.throws }
  const once = (name: 'createComment' | 'updateComment'): void => {
    const error = throws[name]
    delete throws[name]
    if (error !== undefined) throw error
  }
  const signal = scene.signal ?? new AbortController().signal
  const kept = await keepComment({
    github: {
      listComments: async (pullRequest, given) => {
        steps.push(`list ${pullRequest} ${given === signal}`)
        return [...comments]
      },
      viewer: async () => {
        steps.push('viewer')
        return scene.viewer ?? { login: 'app', isBot: true }
      },
      createComment: async (pullRequest, body) => {
        steps.push(`create ${pullRequest}`)
        scene.meanwhile?.(comments)
        once('createComment')
        const made = comment(100, { body })
        comments.push(made)
        return made
      },
      updateComment: async (id, body) => {
        steps.push(`update ${id} ${body === BODY}`)
        once('updateComment')
      },
      deleteComment: async (id) => void steps.push(`delete ${id}`),
    },
    pullRequest: 7,
    key: 'staging',
    body: BODY,
    create: scene.create ?? true,
    isNewer: scene.isNewer ?? (() => false),
    signal,
  })
  return { kept, steps, comments }
}

const LIST = 'list 7 true'
const WRITTEN = [LIST, 'create 7', LIST]
const BROUGHT = [LIST, 'viewer', 'update 1 true']

describe('the marker', () => {
  it.each([
    ['a', '<!-- deploy-agent-server: a -->'],
    ['a-b', '<!-- deploy-agent-server: a-b -->'],
    ['a--b-', '<!-- deploy-agent-server: a%2D-b%2D -->'],
    ['\ud800', '<!-- deploy-agent-server: %EF%BF%BD -->'],
  ])('of %j', (key, marker) => {
    expect(markerOf(key)).toBe(marker)
  })
})

describe('the steps to a comment', () => {
  it('ask for nobody where there is none', async () => {
    expect(await keep({})).toMatchObject({ kept: 'created', steps: WRITTEN })
    expect(await keep({ create: false })).toMatchObject({ kept: 'left', steps: [LIST] })
    expect(await keep({ create: false, comments: [comment(1, { body: `x ${MARKER}` })] })).toMatchObject({ steps: [LIST] })
  })

  it.each([
    ['an app', comment(1, { author: 'App[bot]' }), { login: 'app', isBot: true }, true],
    ['an app, the other way round', comment(1, { author: 'app' }), { login: 'APP[bot]', isBot: true }, true],
    ['a person', comment(1, { author: 'Octocat', authorIsBot: false }), { login: 'octocat', isBot: false }, true],
    [
      'a person who is called as the app',
      comment(1, { authorIsBot: false, author: 'app' }),
      { login: 'app', isBot: true },
      false,
    ],
    ['somebody else', comment(1, { author: 'other[bot]' }), { login: 'app', isBot: true }, false],
    ['nobody', comment(1, { author: null }), { login: 'app', isBot: true }, false],
    ['a name with the end of an app in it', comment(1, { author: 'a[bot]pp' }), { login: 'app', isBot: true }, false],
    ['a marker behind empty lines', comment(1, { body: `\n\n ${MARKER}\nold` }), { login: 'app', isBot: true }, true],
  ])('change only what is their own: %s', async (_, existing, viewer, own) => {
    const { kept, steps } = await keep({ comments: [existing], viewer })
    expect({ kept, steps }).toEqual(
      own ? { kept: 'updated', steps: BROUGHT } : { kept: 'created', steps: [LIST, 'viewer', 'create 7', LIST] },
    )
  })

  it('delete all but the oldest', async () => {
    const { kept, steps } = await keep({ comments: [comment(1), comment(2), comment(3, { author: 'x' }), comment(4)] })
    expect(kept).toBe('updated')
    expect(steps).toEqual([LIST, 'viewer', 'delete 2', 'delete 4', 'update 1 true'])
  })

  it.each([
    [BODY, 'unchanged'],
    [` ${BODY.replaceAll('\n', '\r\n')}\r\n`, 'unchanged'],
    [`${BODY}er`, 'left'],
  ])('leave %j: %s', async (body, kept) => {
    const seen: string[] = []
    const isNewer = (text: string): boolean => (seen.push(text), text.endsWith('er'))
    expect(await keep({ comments: [comment(1, { body })], isNewer })).toMatchObject({ kept, steps: [LIST, 'viewer'] })
    expect(seen).toEqual([body])
  })
})

describe('a comment that was deleted meanwhile', () => {
  it('is written again where one is wanted', async () => {
    const { kept, steps } = await keep({
      comments: [comment(1)],
      throws: { updateComment: failure(404) },
      meanwhile: (all) => void all.shift(),
    })
    expect({ kept, steps }).toEqual({ kept: 'created', steps: [...BROUGHT, 'create 7', LIST] })
  })

  it.each([
    ['none is wanted', failure(404), false],
    ['it may not be changed', failure(403), true],
    ['it is a mistake', Object.assign(new Error('a mistake'), { status: 404 }), true],
  ])('is a failure where %s', async (_, error, create) => {
    await expect(keep({ comments: [comment(1)], create, throws: { updateComment: error } })).rejects.toBe(error)
  })
})

describe('a comment that may have been written', () => {
  const lost = failure(null, true)

  it('is looked for by its text, the newest first', async () => {
    const made = comment(9, { body: `${BODY}\r\n` })
    const scene = { throws: { createComment: lost }, meanwhile: (all: Comment[]) => void all.push(made) }
    expect(await keep(scene)).toMatchObject({ kept: 'created', steps: [LIST, 'create 7', LIST, LIST] })
    const twice = { ...scene, meanwhile: (all: Comment[]) => void all.push(made, { ...made, id: 10 }) }
    expect(await keep(twice)).toMatchObject({ kept: 'unchanged', steps: [LIST, 'create 7', LIST, LIST, 'delete 10'] })
  })

  it('is written again where it is not there', async () => {
    const other = comment(9, { author: 'x', body: `${MARKER}\nother` })
    const { kept, steps } = await keep({
      throws: { createComment: lost },
      meanwhile: (all) => void all.splice(0, all.length, other),
    })
    expect({ kept, steps }).toEqual({ kept: 'created', steps: [LIST, 'create 7', LIST, 'create 7', LIST] })
  })

  it.each([
    ['GitHub refused it', failure(403), undefined],
    ['it is a mistake', Object.assign(new Error('a mistake'), { request: { ambiguous: true } }), undefined],
    ['the step has ended', lost, AbortSignal.abort()],
  ])('is a failure where %s', async (_, error, signal) => {
    await expect(keep({ throws: { createComment: error }, ...(signal === undefined ? {} : { signal }) })).rejects.toBe(error)
  })
})

describe('another step at the same moment', () => {
  it('that was first keeps its comment, brought up to date', async () => {
    const { kept, steps } = await keep({ meanwhile: (all) => void all.push(comment(50)) })
    expect({ kept, steps }).toEqual({ kept: 'updated', steps: [...WRITTEN, 'delete 100', 'update 50 true'] })
  })

  it('that deletes its comment again leaves this one', async () => {
    const scene = { throws: { updateComment: failure(404) }, meanwhile: (all: Comment[]) => void all.push(comment(50)) }
    expect((await keep(scene)).kept).toBe('created')
  })

  it('of somebody else changes nothing', async () => {
    const other = comment(50, { author: 'other[bot]' })
    expect(await keep({ meanwhile: (all) => void all.push(other) })).toMatchObject({ kept: 'created', steps: WRITTEN })
  })
})
