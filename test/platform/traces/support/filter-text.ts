import { PART_FIELDS } from '../../../../src/contract/filter/fields.ts'
import type { Condition, Filter } from '../../../../src/contract/filter/filter.ts'

/** A filter written out as a user would write it. */
export function filterText(filter: Filter): string {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return `${filter.kind}(${filter.operands.map(filterText).join(', ')})`
    case 'not':
      return `not(${filterText(filter.operand)})`
    case 'scalar':
      return conditionText(filter.field, filter.condition)
    case 'tag':
      return `has(tags, ${JSON.stringify(filter.tag)})`
    case 'members':
      return `has(${filter.field}, ${JSON.stringify(JSON.stringify(Object.fromEntries(filter.members)))})`
    case 'search':
      return filter.field === null
        ? `search(${JSON.stringify(filter.text)})`
        : `search(${filter.field}, ${JSON.stringify(filter.text)})`
    case 'element': {
      const conditions = filter.conditions.map(({ part, condition }) => {
        const [field] = Object.entries(PART_FIELDS).find(
          ([, known]) => known.collection === filter.collection && known.part === part,
        )!
        return conditionText(field, condition)
      })
      const joined = conditions.length === 1 ? conditions[0]! : `and(${conditions.join(', ')})`
      return filter.absent ? `not(${joined})` : joined
    }
  }
}

function conditionText(field: string, condition: Condition): string {
  switch (condition.operator) {
    case 'in':
      return `in(${field}, [${condition.values.map((value) => JSON.stringify(value)).join(', ')}])`
    case 'like':
      return `like(${field}, ${JSON.stringify(condition.pattern)})`
    case 'search':
      return `search(${field}, ${JSON.stringify(condition.text)})`
    default:
      return `${condition.operator}(${field}, ${JSON.stringify(condition.value)})`
  }
}
