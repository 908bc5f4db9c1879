import type { Collection, JsonField, Part, ScalarField } from './fields.ts'

/**
 * What a filter means: checked, and free of everything that the text left open. Every condition is true or false, never unknown:
 * a comparison with a field that is null is false, except `neq`, which is true.
 */
export type Filter =
  | { readonly kind: 'and' | 'or'; readonly operands: readonly Filter[] }
  | { readonly kind: 'not'; readonly operand: Filter }
  | { readonly kind: 'scalar'; readonly field: ScalarField; readonly condition: Condition }
  | { readonly kind: 'tag'; readonly tag: string }
  /** The JSON has each of these members, with exactly that value. */
  | { readonly kind: 'members'; readonly field: JsonField; readonly members: readonly (readonly [key: string, value: unknown])[] }
  /** The text stands in the JSON; in any of the searched fields without one. Letters A to Z count in either case. */
  | { readonly kind: 'search'; readonly field: JsonField | null; readonly text: string }
  /** One element of the collection (`absent`: no element) meets all conditions. */
  | {
      readonly kind: 'element'
      readonly collection: Collection
      readonly conditions: readonly PartCondition[]
      readonly absent: boolean
    }

export type Comparison = 'eq' | 'neq' | 'gt' | 'gte' | 'lt' | 'lte'
/** Times are ISO 8601 with microseconds and `Z`; durations are seconds. */
export type FilterValue = string | number | boolean | null

export type Condition =
  | { readonly operator: Comparison; readonly value: FilterValue }
  | { readonly operator: 'in'; readonly values: readonly (string | number)[] }
  /** `%` stands for any characters, `_` for one; a backslash takes that meaning away. The case counts. */
  | { readonly operator: 'like'; readonly pattern: string }
  | { readonly operator: 'search'; readonly text: string }

export interface PartCondition {
  readonly part: Part
  readonly condition: Condition
}
