import { isTagRef } from '../../contract/git-ref.ts'
import type { GithubContext } from '../github/context.ts'
import { sourceOfEvent } from '../github/event.ts'
import type { RawInputs } from '../inputs.ts'
import { given } from '../inputs/read.ts'
import type { Fields } from '../parse/fields.ts'
import type { InputProblem } from '../parse/problem.ts'
import type { InputName } from '../registry.ts'

/** What a promotion is to take, and what names it. */
export type PromoteWish = {
  /** The deployment whose live revision has been proven. */
  from: { name: string } | { id: string }
  /** `refs/tags/…`. Absent where only an image is named. */
  tag?: string
  /** The image that has to be the live one, by its digest. */
  imageUri?: string
}

/** Inputs that say what a deploy is made from: a promotion takes all of it from the proven revision. */
const OF_THE_PROVEN = ['repo-url', 'repo-ref', 'config-path'] as const satisfies readonly InputName[]

/** Reads what is to be promoted; undefined when that cannot be told, with the problems added. */
export function promoteOf({
  raw,
  fields,
  context,
  problems,
}: {
  raw: RawInputs
  fields: Fields
  context: GithubContext
  problems: InputProblem[]
}): PromoteWish | undefined {
  const before = problems.length
  problems.push(...contradictions(raw, fields))
  const from = fields['promote-from']
  const event = sourceOfEvent(context).ref
  const tag = fields.tag ?? (event !== undefined && isTagRef(event) ? event : undefined)
  const imageUri = fields['image-uri']
  if (tag === undefined && raw.tag === '' && raw['image-uri'] === '') {
    const problem = `is empty, and the event ${context.eventName || '(none)'} names no tag: it says what is to be promoted`
    problems.push({ input: 'tag', problem, fix: 'run on a release or on the push of a tag, or set tag' })
  }
  if (imageUri !== undefined && digestOf(imageUri) === undefined) {
    const problem = 'names no digest: a tag of an image may mean another image by now'
    problems.push({
      input: 'image-uri',
      problem,
      fix: 'write it as name@sha256:…, or leave it out and give a tag of the repository',
    })
  }
  if (from === undefined || problems.length > before) return undefined
  return { from, ...given({ tag, imageUri }) }
}

function contradictions(raw: RawInputs, fields: Fields): InputProblem[] {
  const problems: InputProblem[] = []
  const from = raw['promote-from']
  if (from === '') {
    const fix = 'set it to the name or the id of the deployment that was proven'
    problems.push({ input: 'promote-from', problem: 'is empty, and mode is promote', fix })
  } else if (from === raw['deployment-name'] || from.toLowerCase() === raw['deployment-id'].toLowerCase()) {
    const fix = 'name the deployment that was proven in promote-from, and the one that is to get its revision as deployment-name'
    problems.push({ input: 'promote-from', problem: 'is the deployment that is to be changed', fix })
  }
  for (const input of OF_THE_PROVEN) {
    if (raw[input] === '') continue
    const problem = 'is set, and mode is promote, which takes it from the revision that was proven'
    problems.push({ input, problem, fix: `take ${input} out, or use mode: deploy` })
  }
  if (fields.wait === false) {
    const problem = 'is false, and mode is promote: whether the proven commit was built can only be seen at the end'
    problems.push({ input: 'wait', problem, fix: 'take wait out' })
  }
  return problems
}

/** `sha256:…` of an image reference; undefined when it names none. */
export function digestOf(imageUri: string): string | undefined {
  return /@(sha256:[0-9a-f]{64})$/.exec(imageUri)?.[1]
}
