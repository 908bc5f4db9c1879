import { FIELDS, type Fields } from '../parse/fields.ts'
import { showAddress } from '../parse/address.ts'
import type { Parsed } from '../parse/parsed.ts'
import { type InputProblem, inputFailure } from '../parse/problem.ts'
import { INPUT_NAMES, type InputName, inputSpec } from '../registry.ts'
import type { RawInputs } from '../inputs.ts'

/** Reads every input that has a text, each by itself. What is wrong with one becomes a problem and leaves its field out. */
export function readFields(raw: RawInputs): { fields: Fields; problems: InputProblem[] } {
  const fields: Record<string, unknown> = {}
  const problems: InputProblem[] = []
  for (const name of INPUT_NAMES) {
    const { default: fallback, required, secret } = inputSpec(name)
    const text = raw[name] === '' ? fallback : raw[name]
    if (text === '' && required)
      problems.push({
        input: name,
        problem: 'is required and empty',
        fix: `set ${name}${secret ? ' from a secret that exists' : ''}`,
      })
    if (text === '') continue
    const { accepted, parse } = FIELDS[name]
    const parsed: Parsed<unknown> = parse(text)
    if ('value' in parsed) {
      fields[name] = parsed.value
      continue
    }
    const { problem, fix } = parsed
    problems.push({
      input: name,
      problem,
      accepted,
      ...shown(name, text),
      ...(fix === undefined ? {} : { fix: hideCredentials(name, fix) }),
    })
  }
  return { fields, problems }
}

/** The failure of a step whose inputs cannot be used, in the order of action.yml. */
export function refusal(problems: readonly InputProblem[]): Error {
  return inputFailure(problems.toSorted((a, b) => INPUT_NAMES.indexOf(a.input) - INPUT_NAMES.indexOf(b.input)))
}

/** The fields that have a value, for types that tell "absent" from "undefined". */
export function given<T extends Record<string, unknown>>(fields: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>
  }
}

/** The value of an input as an error may show it. */
function shown(name: InputName, text: string): { value?: string } {
  if (inputSpec(name).secret || inputSpec(name).kind === 'object') return {}
  return { value: hideCredentials(name, text) }
}

function hideCredentials(name: InputName, text: string): string {
  return inputSpec(name).kind === 'url' || name === 'image-uri' ? showAddress(text) : text
}
