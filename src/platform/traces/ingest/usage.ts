/** Tokens and costs of a run. Costs are decimals in a text; what is not known is null. */
export interface Usage {
  readonly total_tokens: number | null
  readonly prompt_tokens: number | null
  readonly completion_tokens: number | null
  readonly total_cost: string | null
  readonly prompt_cost: string | null
  readonly completion_cost: string | null
  /** JSON: tokens and costs by kind (cached, reasoning, …), where they were sent. */
  readonly usage_details: string | null
}

type Fields = Record<string, unknown>

/**
 * What a run used, from wherever clients leave it: fields of the run itself, `extra.metadata.usage_metadata`,
 * `outputs.usage_metadata`, a message in the outputs, `outputs.llm_output.token_usage`. The first place that has a number wins.
 */
export function readUsage({ run, outputs, extra }: { run: Fields; outputs: unknown; extra: unknown }): Usage {
  const places = [run, ...usagePlaces(outputs, extra)]
  const tokens = (...names: string[]) => firstOf(places, names, toTokens)
  const cost = (...names: string[]) => firstOf(places, names, toCost)
  const prompt_tokens = tokens('prompt_tokens', 'input_tokens', 'promptTokens')
  const completion_tokens = tokens('completion_tokens', 'output_tokens', 'completionTokens')
  const total_tokens = tokens('total_tokens', 'totalTokens') ?? sumTokens(prompt_tokens, completion_tokens)
  const details = {
    prompt_token_details: firstOf(places, ['prompt_token_details', 'input_token_details'], toRecord),
    completion_token_details: firstOf(places, ['completion_token_details', 'output_token_details'], toRecord),
    prompt_cost_details: firstOf(places, ['prompt_cost_details', 'input_cost_details'], toRecord),
    completion_cost_details: firstOf(places, ['completion_cost_details', 'output_cost_details'], toRecord),
  }
  return {
    total_tokens,
    prompt_tokens,
    completion_tokens,
    total_cost: cost('total_cost'),
    prompt_cost: cost('prompt_cost', 'input_cost'),
    completion_cost: cost('completion_cost', 'output_cost'),
    usage_details: Object.values(details).some((value) => value !== null) ? JSON.stringify(details) : null,
  }
}

function usagePlaces(outputs: unknown, extra: unknown): Fields[] {
  const places: unknown[] = [inside(inside(extra, 'metadata'), 'usage_metadata')]
  const of = (value: unknown) => [inside(value, 'usage_metadata'), inside(inside(value, 'kwargs'), 'usage_metadata')]
  places.push(
    ...of(outputs),
    inside(inside(outputs, 'llm_output'), 'token_usage'),
    inside(inside(outputs, 'llm_output'), 'usage'),
  )
  places.push(...of(inside(outputs, 'output')), ...of(inside(outputs, 'message')))
  const generations = inside(outputs, 'generations')
  const [first] = Array.isArray(generations) ? generations.flat(1) : []
  places.push(...of(inside(first, 'message')))
  return places.filter(isFields)
}

function inside(value: unknown, name: string): unknown {
  return isFields(value) ? value[name] : undefined
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function firstOf<T>(places: readonly Fields[], names: readonly string[], read: (value: unknown) => T | null): T | null {
  for (const place of places) {
    for (const name of names) {
      const value = read(place[name])
      if (value !== null) return value
    }
  }
  return null
}

function toTokens(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

/** At most fifteen digits before the point and eighteen behind it: what a decimal column of an export can carry. */
function toCost(value: unknown): string | null {
  if (typeof value !== 'number' && typeof value !== 'string') return null
  const text = typeof value === 'number' ? plainDecimal(value) : value.trim()
  return /^-?\d{1,15}(\.\d{1,18})?$/.test(text) ? text : null
}

/** `1e-7` as `0.0000001`; digits beyond the eighteenth decimal are cut. */
function plainDecimal(value: number): string {
  const text = String(value)
  if (!text.includes('e')) return text
  return Math.abs(value) < 1 ? value.toFixed(18).replace(/0+$/, '').replace(/\.$/, '') : text
}

function toRecord(value: unknown): Fields | null {
  return isFields(value) ? value : null
}

function sumTokens(prompt: number | null, completion: number | null): number | null {
  return prompt === null && completion === null ? null : (prompt ?? 0) + (completion ?? 0)
}
