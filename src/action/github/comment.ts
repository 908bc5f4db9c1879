import { GithubFailure } from './failure.ts'
import type { Comment, Github } from './github.ts'

/** The hidden line that a sticky comment begins with. */
export function markerOf(key: string): string {
  // Two hyphens in a row, or one at the end, would end the comment of HTML for some readers.
  return `<!-- deploy-agent-server: ${encodeURIComponent(key.toWellFormed()).replace(/-(?=-|$)/g, '%2D')} -->`
}

/** What became of the comment; `left`: there is none, or it tells of something newer. */
export type Kept = 'created' | 'updated' | 'unchanged' | 'left'

type Comments = Pick<Github, 'listComments' | 'createComment' | 'updateComment' | 'deleteComment' | 'viewer'>
type Author = Pick<Comment, 'author' | 'authorIsBot'>

/**
 * Brings the one comment that begins with the marker of `key`, and is of the token's own author, to `body` (which begins with it, too).
 * A comment of anybody else is never touched, whatever it begins with. Two steps that create one at the same moment end with one: each
 * looks again, and the older one stays. Throws a `GithubFailure`.
 */
export async function keepComment({
  github,
  pullRequest,
  key,
  body,
  create,
  isNewer,
  signal,
}: {
  github: Comments
  pullRequest: number
  key: string
  body: string
  /** Whether to write one where there is none. */
  create: boolean
  /** True for a comment that tells of something newer, and stays. */
  isNewer: (body: string) => boolean
  signal: AbortSignal
}): Promise<Kept> {
  const marked = await listMarked()
  if (marked.length > 0) {
    const { login, isBot } = await github.viewer(signal)
    const own = marked.filter(isOf({ author: login, authorIsBot: isBot }))
    const kept = await bringUpToDate(own)
    if (kept !== undefined) return kept
  }
  if (!create) return 'left'
  const created = await createOnce()
  // Another step may have done the same at the same moment.
  const own = (await listMarked()).filter(isOf(created))
  const [first] = own
  if (first === undefined || first.id === created.id) return 'created'
  return (await bringUpToDate(own)) ?? 'created'

  async function listMarked(): Promise<Comment[]> {
    const marker = markerOf(key)
    return (await github.listComments(pullRequest, signal)).filter((comment) => comment.body.trimStart().startsWith(marker))
  }

  /** The oldest one is brought up to date, the others go. Undefined when there is none any more. */
  async function bringUpToDate([first, ...others]: readonly Comment[]): Promise<Kept | undefined> {
    if (first === undefined) return undefined
    for (const other of others) await github.deleteComment(other.id, signal)
    if (isNewer(first.body)) return 'left'
    if (normalised(first.body) === normalised(body)) return 'unchanged'
    try {
      await github.updateComment(first.id, body, signal)
      return 'updated'
    } catch (error) {
      if (error instanceof GithubFailure && error.status === 404 && create) return undefined
      throw error
    }
  }

  /** Writes the comment; where no answer tells whether it was written, the list does. */
  async function createOnce(): Promise<Comment> {
    try {
      return await github.createComment(pullRequest, body, signal)
    } catch (error) {
      if (!(error instanceof GithubFailure) || !error.request.ambiguous || signal.aborted) throw error
      const made = (await listMarked()).findLast((comment) => normalised(comment.body) === normalised(body))
      return made ?? (await github.createComment(pullRequest, body, signal))
    }
  }
}

/** The login of an app ends differently in GitHub's two interfaces, and people may be called what an app is called. */
function isOf({ author, authorIsBot }: Author): (comment: Author) => boolean {
  return (comment) => author !== null && bare(comment.author) === bare(author) && comment.authorIsBot === authorIsBot
}

function bare(login: string | null): string | undefined {
  return login?.replace(/\[bot\]$/, '').toLowerCase()
}

function normalised(body: string): string {
  return body.replaceAll('\r\n', '\n').trim()
}
