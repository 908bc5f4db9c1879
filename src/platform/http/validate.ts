import type { z } from 'zod'
import type { ValidationError } from '../../contract/errors.ts'
import { findUnfit } from './json.ts'
import { toValidationErrors } from './validation-error.ts'

type Place = 'path' | 'query' | 'body'

/** One input as it came. `errors`: it could not even be read. `prepare` brings it into the words of the schema. */
export interface Input {
  readonly schema: z.ZodType
  readonly value: unknown
  readonly errors?: readonly ValidationError[]
  readonly prepare?: (value: unknown) => unknown
}

/** A route's inputs; an absent one is not judged. */
export type Inputs = Partial<Record<Place, Input>>

export type Validated = { ok: true; values: Partial<Record<Place, unknown>> } | { ok: false; errors: ValidationError[] }

/** How many faults one answer lists at most, and how much of a key that the caller made up it repeats. */
const ERRORS_MAX = 100
const KEY_MAX = 100

/** Judges path, query and body together, so that one answer lists every fault (specification 2.4). */
export function validateInputs(inputs: Inputs): Validated {
  const values: Partial<Record<Place, unknown>> = {}
  const errors: ValidationError[] = []
  for (const [place, { schema, value, errors: unreadable = [], prepare }] of Object.entries(inputs) as [Place, Input][]) {
    const unfit = [...unreadable, ...findUnfit(value).map((error) => ({ ...error, loc: [place, ...error.loc] }))]
    if (unfit.length > 0) {
      errors.push(...unfit)
      continue
    }
    const result = schema.safeParse(prepare === undefined ? value : prepare(value), { reportInput: true })
    if (result.success) values[place] = result.data
    else errors.push(...result.error.issues.flatMap((issue) => toValidationErrors(place, issue)))
  }
  return errors.length === 0 ? { ok: true, values } : { ok: false, errors: errors.slice(0, ERRORS_MAX).map(shorten) }
}

function shorten(error: ValidationError): ValidationError {
  return { ...error, loc: error.loc.map((part) => (typeof part === 'string' && part.length > KEY_MAX ? `${part.slice(0, KEY_MAX)}…` : part)) }
}
