import type { z } from 'zod'
import type { ValidationError } from '../../contract/errors.ts'

type Issue = z.core.$ZodIssue
type Fault = Pick<ValidationError, 'msg' | 'type'>

/** One issue of zod in the words and types of the hosted service's own validator (specification 2.4). */
export function toValidationErrors(place: string, issue: Issue): ValidationError[] {
  const loc = [place, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ loc: [...loc, key], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' }))
  }
  return [{ loc, ...faultOf(issue) }]
}

function faultOf(issue: Issue): Fault {
  if (issue.input === undefined && issue.code !== 'custom') return { msg: 'Field required', type: 'missing' }
  switch (issue.code) {
    case 'invalid_value':
      return { msg: `Input should be ${anyOf(issue.values.map((value) => `'${String(value)}'`))}`, type: 'enum' }
    case 'invalid_type':
      return typeFault(issue)
    case 'too_big':
      return tooBig(issue)
    case 'too_small':
      return tooSmall(issue)
    case 'invalid_format':
      return formatFault(issue)
    case 'custom':
      return customFault(issue)
    default:
      return valueError(issue.message)
  }
}

/** `'a'`, `'a' or 'b'`, `'a', 'b' or 'c'`. */
export function anyOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

const TYPE_FAULTS: Readonly<Record<string, Fault>> = {
  string: { msg: 'Input should be a valid string', type: 'string_type' },
  number: { msg: 'Input should be a valid number', type: 'float_type' },
  int: { msg: 'Input should be a valid integer, got a number with a fractional part', type: 'int_from_float' },
  boolean: { msg: 'Input should be a valid boolean', type: 'bool_type' },
  array: { msg: 'Input should be a valid list', type: 'list_type' },
  object: { msg: 'Input should be a valid dictionary or object to extract fields from', type: 'model_attributes_type' },
}

function typeFault(issue: Issue & { code: 'invalid_type' }): Fault {
  if (issue.expected === 'null') {
    const said = issue.message.startsWith('Invalid input') ? 'Input should be null' : issue.message
    return { msg: said, type: 'none_required' }
  }
  return TYPE_FAULTS[issue.expected] ?? valueError(issue.message)
}

function tooBig({ origin, maximum, inclusive }: Issue & { code: 'too_big' }): Fault {
  if (origin === 'string') return { msg: `String should have at most ${countOf(maximum, 'character')}`, type: 'string_too_long' }
  if (origin === 'array') return { msg: `List should have at most ${countOf(maximum, 'item')} after validation`, type: 'too_long' }
  if (inclusive === false) return { msg: `Input should be less than ${maximum}`, type: 'less_than' }
  return { msg: `Input should be less than or equal to ${maximum}`, type: 'less_than_equal' }
}

function tooSmall({ origin, minimum, inclusive }: Issue & { code: 'too_small' }): Fault {
  if (origin === 'string') return { msg: `String should have at least ${countOf(minimum, 'character')}`, type: 'string_too_short' }
  if (origin === 'array') return { msg: `List should have at least ${countOf(minimum, 'item')} after validation`, type: 'too_short' }
  if (inclusive === false) return { msg: `Input should be greater than ${minimum}`, type: 'greater_than' }
  return { msg: `Input should be greater than or equal to ${minimum}`, type: 'greater_than_equal' }
}

function countOf(count: number | bigint, noun: string): string {
  return `${count} ${noun}${Number(count) === 1 ? '' : 's'}`
}

function formatFault({ format, message }: Issue & { code: 'invalid_format' }): Fault {
  if (format === 'uuid' || format === 'guid') return { msg: 'Input should be a valid UUID', type: 'uuid_parsing' }
  if (format === 'url') return { msg: 'Input should be a valid URL', type: 'url_parsing' }
  if (format === 'datetime') return { msg: 'Input should be a valid datetime', type: 'datetime_parsing' }
  return { msg: message, type: 'string_pattern_mismatch' }
}

/** A rule of ours. `params.type` names a type of the service's validator, whose words the message has then. */
function customFault({ params, message }: Issue & { code: 'custom' }): Fault {
  const type: unknown = params?.['type']
  return typeof type === 'string' ? { msg: message, type } : valueError(message)
}

function valueError(message: string): Fault {
  return { msg: `Value error, ${message}`, type: 'value_error' }
}
