import { clip, plainLine } from '../report/plain.ts'
import { ActionFailure } from '../report/error-codes.ts'
import type { InputName } from '../registry.ts'

/** One bad input. */
export type InputProblem = {
  input: InputName
  /** As it may be shown; absent for secret ones and for those that are not there. */
  value?: string
  /** A clause: "has no unit". */
  problem: string
  accepted?: string
  /** A clause: "write 10m". */
  fix?: string
}

/** All bad inputs in one failure, so that nobody has to run the workflow once for each. */
export function inputFailure(problems: readonly InputProblem[]): ActionFailure {
  const sentences = problems.map(sentence)
  const [only] = sentences
  return new ActionFailure({
    code: 'E_INPUT',
    happened:
      sentences.length === 1 && only !== undefined
        ? only
        : `${sentences.length} inputs cannot be used:\n${sentences.map((line) => `- ${line}`).join('\n')}`,
    tried: 'Nothing was sent to the control plane.',
    next: `Correct ${names(problems)} in the workflow file.`,
  })
}

function sentence({ input, value, problem, accepted, fix }: InputProblem): string {
  const subject = value === undefined ? input : `${input} '${clip(plainLine(value.replaceAll('\n', ' ')), 120)}'`
  const parts = [
    `${subject} ${problem}`,
    ...(accepted === undefined ? [] : [`accepted: ${accepted}`]),
    ...(fix === undefined ? [] : [`fix: ${fix}`]),
  ]
  return `${parts.join('; ')}.`
}

function names(problems: readonly InputProblem[]): string {
  const unique = [...new Set(problems.map(({ input }) => `\`${input}\``))]
  const last = unique.at(-1) ?? ''
  return unique.length === 1 ? last : `${unique.slice(0, -1).join(', ')} and ${last}`
}
