import { startDeadline } from '../../client/deadline.ts'
import type { Deps } from '../deps.ts'
import { requestFailure } from '../report/request-failure.ts'
import type { PreviewWish } from './wish.ts'

/** Longest wait for GitHub to tell the state of a pull request. */
const LOOK_MS = 60_000

export type PullRequestState = {
  state: 'open' | 'closed'
  /** The commit of its head; undefined when only the event tells the state. */
  headSha: string | undefined
}

/**
 * The state of the pull request right now. Where GitHub does not tell, that of the event stands in, with a warning: a preview that is
 * made by mistake is found by a sweep, and a step that goes red whenever GitHub hiccups is not.
 */
export async function readPullRequest(
  { pullRequest, eventState }: PreviewWish,
  { github, effects, journal, log, signal }: Pick<Deps, 'github' | 'effects' | 'journal' | 'log' | 'signal'>,
): Promise<PullRequestState> {
  const doubt = await look()
  if (typeof doubt !== 'string') return doubt
  const sentence = `Whether the pull request ${pullRequest} is open could not be read from GitHub (${doubt}): the event says ${eventState}.`
  if (!journal.notes.includes(sentence)) log.warning(sentence)
  journal.note(sentence)
  return { state: eventState, headSha: undefined }

  async function look(): Promise<PullRequestState | string> {
    if (github === undefined) return 'there is no github-token'
    const deadline = startDeadline({ timeoutMs: LOOK_MS, parent: signal, effects })
    try {
      const found = await github.getPullRequest(pullRequest, deadline.signal)
      return found === null ? 'it knows no such pull request' : { state: found.state, headSha: found.headSha }
    } catch (error) {
      if (signal.aborted) throw requestFailure(error, `Reading the pull request ${pullRequest}`)
      return error instanceof Error ? error.message : String(error)
    } finally {
      deadline.stop()
    }
  }
}
