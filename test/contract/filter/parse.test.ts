import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FILTER_FIELDS } from '../../../src/contract/filter/fields.ts'
import { FilterError } from '../../../src/contract/filter/filter-error.ts'
import { parseFilter } from '../../../src/contract/filter/parse.ts'

const eq = (field: string, value: unknown) => ({ kind: 'scalar', field, condition: { operator: 'eq', value } })
const element = (collection: string, parts: Record<string, unknown>, absent = false) => ({
  kind: 'element',
  collection,
  conditions: Object.entries(parts).map(([part, condition]) => ({ part, condition })),
  absent,
})
const is = (value: unknown) => ({ operator: 'eq', value })

describe('what a filter means', () => {
  test.each<[string, unknown]>([
    ['eq(name, "x")', eq('name', 'x')],
    ["eq(name, 'it\\'s')", eq('name', "it's")],
    ['eq(name, "\\u00e4\\n\\"")', eq('name', 'ä\n"')],
    ['  eq ( is_root ,true, ) ', eq('is_root', true)],
    ['eq(is_root, True)', eq('is_root', true)],
    ['eq(error, null)', eq('error', null)],
    ['eq(run_id, "01890A5D-AC96-774B-BCCE-B302099A8057")', eq('id', '01890a5d-ac96-774b-bcce-b302099a8057')],
    ['gt(latency, "500ms")', { kind: 'scalar', field: 'latency', condition: { operator: 'gt', value: 0.5 } }],
    ['eq(latency, "1.25 s")', eq('latency', 1.25)],
    ['eq(latency, "2m")', eq('latency', 120)],
    ['eq(latency, "1h")', eq('latency', 3600)],
    ['eq(latency, "1d")', eq('latency', 86_400)],
    ['gte(latency, 10)', { kind: 'scalar', field: 'latency', condition: { operator: 'gte', value: 10 } }],
    [
      'lt(start_time, "2023-07-15T12:34:56Z")',
      { kind: 'scalar', field: 'start_time', condition: { operator: 'lt', value: '2023-07-15T12:34:56.000000Z' } },
    ],
    [
      'in(run_type, ["llm", "chain"])',
      { kind: 'scalar', field: 'run_type', condition: { operator: 'in', values: ['llm', 'chain'] } },
    ],
    ['like(name, "a\\\\\\\\")', { kind: 'scalar', field: 'name', condition: { operator: 'like', pattern: 'a\\\\' } }],
    ['like(name, "a\\%%")', { kind: 'scalar', field: 'name', condition: { operator: 'like', pattern: 'a\\%%' } }],
    ['search(name, "x")', { kind: 'scalar', field: 'name', condition: { operator: 'search', text: 'x' } }],
    ['search("x")', { kind: 'search', field: null, text: 'x' }],
    ['search(error, "x")', { kind: 'scalar', field: 'error', condition: { operator: 'search', text: 'x' } }],
    ['search(feedback_comment, "x")', element('feedback', { comment: { operator: 'search', text: 'x' } })],
    ['in(metadata_value, ["a", 1, true])', element('metadata', { value: { operator: 'in', values: ['a', '1', 'true'] } })],
    ['search(inputs, "x")', { kind: 'search', field: 'inputs', text: 'x' }],
    ['has(tags, "production")', { kind: 'tag', tag: 'production' }],
    ['has(metadata, \'{"user": {"id": 7}}\')', { kind: 'members', field: 'metadata', members: [['user', { id: 7 }]] }],
    // A backslash and a `u` that are no escape.
    [
      'has(metadata, \'{"path": "C:\\\\\\\\udbank"}\')',
      { kind: 'members', field: 'metadata', members: [['path', 'C:\\udbank']] },
    ],
    ['has(metadata, \'{"a": "\\\\u00e4"}\')', { kind: 'members', field: 'metadata', members: [['a', 'ä']] }],
    ['not(eq(is_root, true))', { kind: 'not', operand: eq('is_root', true) }],
    [
      'and(eq(run_type, "llm"), or(eq(name, "a"), eq(name, "b")))',
      { kind: 'and', operands: [eq('run_type', 'llm'), { kind: 'or', operands: [eq('name', 'a'), eq('name', 'b')] }] },
    ],
  ])('%s', (text, meaning) => {
    expect(parseFilter(text)).toEqual(meaning)
  })

  test.each<[string, unknown]>([
    // Parts side by side speak of one element.
    [
      'and(eq(feedback_key, "k"), gt(feedback_score, 0.5))',
      [element('feedback', { key: is('k'), score: { operator: 'gt', value: 0.5 } })],
    ],
    [
      'and(eq(metadata_key, "k"), neq(metadata_value, "v"))',
      [element('metadata', { key: is('k'), value: { operator: 'neq', value: 'v' } })],
    ],
    // A key again begins the next element.
    [
      'and(eq(metadata_key, "a"), eq(metadata_value, 1), eq(metadata_key, "b"), eq(metadata_value, true))',
      [element('metadata', { key: is('a'), value: is('1') }), element('metadata', { key: is('b'), value: is('true') })],
    ],
    // The key may stand behind its value.
    ['and(eq(metadata_value, "v"), eq(metadata_key, "k"))', [element('metadata', { value: is('v'), key: is('k') })]],
    // Other collections do not mix.
    [
      'and(eq(feedback_key, "k"), eq(metadata_value, "v"))',
      [element('feedback', { key: is('k') }), element('metadata', { value: is('v') })],
    ],
    ['and(eq(input_key, "k"), eq(output_key, "k"))', [element('inputs', { key: is('k') }), element('outputs', { key: is('k') })]],
    // Only `neq`: no element is so.
    [
      'and(neq(metadata_key, "a"), neq(metadata_value, "b"))',
      [element('metadata', { key: is('a') }, true), element('metadata', { value: is('b') }, true)],
    ],
  ])('%s', (text, operands) => {
    expect(parseFilter(text)).toEqual({ kind: 'and', operands })
  })

  test('parts in an or, or alone, stand for themselves', () => {
    expect(parseFilter('or(eq(feedback_key, "a"), gt(feedback_score, 1))')).toEqual({
      kind: 'or',
      operands: [element('feedback', { key: is('a') }), element('feedback', { score: { operator: 'gt', value: 1 } })],
    })
    expect(parseFilter('neq(metadata_key, "phone")')).toEqual(element('metadata', { key: is('phone') }, true))
  })
})

/** As the messages name them. */
const OPERATORS = 'and, or, not, eq, neq, gt, gte, lt, lte, has, in, like, search'

describe('what is wrong, and where', () => {
  test.each<[string, number, string]>([
    ['', 0, 'the filter is empty'],
    ['   ', 0, 'the filter is empty'],
    ['name', 0, 'a filter is a call'],
    ['eq(name, "x"', 12, 'expected "," or ")", not the end of the filter'],
    ['eq(name, "x', 9, 'no closing quote'],
    ['eq(name; "x")', 7, 'unexpected character ";"'],
    ['eq(name "x")', 8, 'expected "," or ")", not a text'],
    ['eq(name, "x") eq(name, "y")', 14, 'after the end of the filter'],
    ['eq(name, x)', 9, 'texts stand in quotes'],
    ['eq()', 0, 'eq(…) begins with the name of a field'],
    ['and(eq())', 4, 'eq(…) begins with the name of a field'],
    ['search()', 0, 'search(…) begins with the name of a field'],
    ['search(inputs, "a", "b")', 0, 'search(…) takes a field and a text, and has 3 arguments'],
    ['search("a", "b")', 7, 'search(…) begins with the name of a field'],
    ['search(nome, "b")', 7, 'unknown field "nome"'],
    ['equals("x", 1)', 0, `unknown operator "equals": the operators are ${OPERATORS}`],
    ['equals(metadata_key, "x")', 0, `unknown operator "equals": the operators are ${OPERATORS}`],
    ['and(equals(metadata_key))', 4, 'unknown operator "equals"'],
    ['and(or(feedback_key))', 7, 'expected a condition'],
    ['and(not(feedback_key))', 8, 'expected a condition'],
    ['and(has(feedback_key, "x"))', 8, 'use eq(feedback_key, …)'],
    ['eq(feedback_score, null)', 19, 'feedback_score cannot be compared with null here'],
    ['in(is_root, [true])', 0, 'is_root is true or false: use eq'],
    ['in(name, [true])', 10, 'name is compared with a text, not with true'],
    ['in(error, [null])', 11, 'error cannot be compared with null here'],
    ['eq(id, 7)', 7, 'id is compared with a UUID, not with 7'],
    ['eq(start_time, true)', 15, 'start_time is compared with a time such as "2026-11-20T08:00:00Z", not with true'],
    ['eq(latency, true)', 12, 'latency is compared with seconds, or a text such as "1.5s", not with true'],
    ['eq(latency, "x5s")', 12, 'latency is compared with seconds'],
    ['eq(latency, "5sx")', 12, 'latency is compared with seconds'],
    ['eq(latency, "5.xs")', 12, 'latency is compared with seconds'],
    ['eq(name, eq(name, "x"))', 9, 'expected a value (at'],
    ['eq(name, ["x"])', 9, 'expected a value (at'],
    ['has("metadata", "x")', 4, 'has(…) begins with the name of a field'],
    ['has(tags)', 0, 'has(…) takes a field and a value, and has 1 arguments'],
    ['has(nome, "x")', 4, 'unknown field "nome"'],
    ['has(run_id, "x")', 4, 'has(…) takes tags, inputs, outputs, metadata, and run_id is none of them: use eq(run_id, …)'],
    ['has(tags, 7)', 10, 'expected a text in quotes'],
    ['has(metadata, 7)', 14, 'expected a text in quotes'],
    ['has(metadata, "7")', 14, 'expected a JSON object'],
    ['has(metadata, "null")', 14, 'expected a JSON object'],
    ['has(metadata, \'{"a": "\\\\u0000"}\')', 14, 'the JSON must not contain NUL characters or halves of surrogate pairs'],
    ['has(metadata, \'{"\\\\ud83c": 1}\')', 14, 'the JSON must not contain NUL characters or halves of surrogate pairs'],
    ['has(metadata, \'{"a": "\\\\\\\\\\\\u0000"}\')', 14, 'the JSON must not contain NUL characters'],
    ['like(name, "\\\\")', 11, 'must not end with a backslash'],
    ['eq(nome, "x")', 3, 'unknown field "nome"'],
    ['equals(name, "x")', 0, 'unknown operator "equals"'],
    ['eq(name)', 0, 'takes a field and a value, and has 1 arguments'],
    ['eq("name", "x")', 3, 'begins with the name of a field'],
    ['eq(name, 7)', 9, 'name is compared with a text, not with 7'],
    ['eq(total_tokens, "7")', 17, 'total_tokens is compared with a number'],
    ['eq(is_root, "true")', 12, 'is_root is compared with true or false'],
    ['eq(id, "7")', 7, 'id is compared with a UUID'],
    ['gt(start_time, "soon")', 15, 'start_time is compared with a time'],
    ['gt(latency, "5 parsecs")', 12, 'latency is compared with seconds'],
    ['gt(name, "x")', 3, 'gt(…) takes numbers and times'],
    ['gt(end_time, null)', 13, 'cannot be compared with null'],
    ['eq(name, null)', 9, 'cannot be compared with null'],
    ['like(total_tokens, "1%")', 5, 'takes a field with text'],
    ['like(name, "x\\\\")', 11, 'must not end with a backslash'],
    ['in(name, "x")', 9, 'in(…) takes a list'],
    ['in(name, [])', 9, 'the list is empty'],
    ['in(name, [name])', 10, 'a list holds texts and numbers only'],
    ['eq(tags, "x")', 3, 'use has(tags, …)'],
    ['has(name, "x")', 4, 'has(…) takes tags'],
    ['has(metadata, "x")', 14, 'expected a JSON object'],
    ['has(metadata, "[1]")', 14, 'expected a JSON object'],
    ['has(feedback_key, "x")', 4, 'use eq(feedback_key, …)'],
    ['and()', 0, 'and(…) needs at least one condition'],
    ['and(name)', 4, 'expected a condition'],
    ['and(and(feedback_key))', 8, 'expected a condition'],
    ['not(eq(name, "x"), eq(name, "y"))', 0, 'not(…) takes one condition'],
    ['eq(name, "\\u00")', 10, 'four hexadecimal digits'],
    ['eq(name, "\\u0000")', 9, 'NUL character'],
    ['eq(name, "\\ud800")', 9, 'half of a surrogate pair'],
    ['eq(total_tokens, 1e999)', 17, 'too large'],
    [`${'not('.repeat(70)}eq(name, "x")${')'.repeat(70)}`, 4 * 64, 'at most 64 calls deep'],
    [`and(${Array.from({ length: 600 }, () => 'eq(name, "x")').join(', ')})`, 4 + 499 * 15, 'at most 500 calls'],
  ])('%s', (text, position, reason) => {
    const error = (() => {
      try {
        return parseFilter(text)
      } catch (thrown) {
        return thrown
      }
    })()
    expect(error).toBeInstanceOf(FilterError)
    expect(error).toMatchObject({ position, message: expect.stringContaining(reason) })
    expect((error as Error).message).toContain(`(at character ${position + 1})`)
  })

  test('an unknown field is answered with all there are', () => {
    expect(() => parseFilter('eq(nome, "x")')).toThrow(`unknown field "nome": the fields are ${FILTER_FIELDS.join(', ')} (at`)
    expect(FILTER_FIELDS.join(', ')).toMatch(/^id, trace_id, .*, is_root, tags, inputs, outputs, metadata, feedback_key, /)
  })

  test('any text either has a meaning or a place where it has none', () => {
    const piece = fc.constantFrom(
      'and',
      'or',
      'not',
      'eq',
      'has',
      'in',
      'search',
      'name',
      'tags',
      'metadata_key',
      '(',
      ')',
      ',',
      '[',
      ']',
      '"x"',
      "'y'",
      '7',
      'null',
      ' ',
      '"',
      '\\',
      'ä',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join('')),
        ),
        (text) => {
          try {
            parseFilter(text)
          } catch (error) {
            expect(error).toBeInstanceOf(FilterError)
            expect((error as FilterError).position).toBeLessThanOrEqual(text.length)
          }
        },
      ),
      { numRuns: 3000 },
    )
  })
})
