import { DEFAULT_CONFIG_PATH } from '../../contract/config-path.ts'
import { isTagRef, repoRefSchema } from '../../contract/git-ref.ts'
import type { GithubContext } from '../github/context.ts'
import { isFromFork, sourceOfEvent } from '../github/event.ts'
import type { GitSource, RawInputs } from '../inputs.ts'
import type { Fields } from '../parse/fields.ts'
import type { InputProblem } from '../parse/problem.ts'
import { sameRepoUrl } from '../parse/repo-url.ts'
import { given } from './read.ts'

/** What to build: of the inputs, else of the event. Undefined when that is not known; then it adds problems that say why. */
export function gitSource({
  raw,
  fields,
  context,
  problems,
}: {
  raw: RawInputs
  fields: Fields
  context: GithubContext
  problems: InputProblem[]
}): GitSource | undefined {
  const event = sourceOfEvent(context)
  const wantedRef = fields.tag ?? fields['repo-ref']
  const named = raw.tag !== '' || raw['repo-ref'] !== ''
  const repoUrl = fields['repo-url'] ?? (raw['repo-url'] === '' ? event.repoUrl : undefined)
  if (raw['repo-url'] === '' && repoUrl === undefined) {
    problems.push({
      input: 'repo-url',
      problem: 'is empty, and GITHUB_REPOSITORY does not say which repository this is',
      fix: 'set repo-url, or image-uri to run an image',
    })
  }
  if (raw['repo-url'] === '' && isFromFork(context)) {
    problems.push({
      input: 'repo-url',
      problem: `is empty, and the pull request comes from a fork (${event.repoUrl ?? 'unknown'})`,
      fix: 'set repo-url to the fork to deploy code that anybody may have written, or skip this step for forks',
    })
  }
  if (!named && event.ref === undefined) {
    problems.push({
      input: 'repo-ref',
      problem: `is empty, and ${event.problem ?? 'the event has no ref'}`,
      fix: 'set repo-ref or tag',
    })
  }
  const repoRef = named ? wantedRef : event.ref
  if (!named && repoRef !== undefined && !repoRefSchema.safeParse(repoRef).success) {
    problems.push({
      input: 'repo-ref',
      problem: `is empty, and the event's ref '${repoRef}' is not one that can be deployed`,
      fix: 'set repo-ref or tag',
    })
  }
  if (repoRef !== undefined && isTagRef(repoRef) && fields['build-on-push'] === true) {
    problems.push({
      input: 'build-on-push',
      value: 'true',
      problem: `contradicts the tag ${repoRef}: when a tag is used, build_on_push must be false`,
      fix: 'set build-on-push to false, or deploy a branch',
    })
  }
  if (repoUrl === undefined || repoRef === undefined) return undefined
  const eventCommit = event.ref === repoRef ? event.commit : undefined
  const commit = event.repoUrl !== undefined && sameRepoUrl(event.repoUrl, repoUrl) ? eventCommit : undefined
  return {
    kind: 'git_host',
    repoUrl,
    repoRef,
    configPath: fields['config-path'] ?? DEFAULT_CONFIG_PATH,
    ...given({ commit, eventCommit }),
  }
}
