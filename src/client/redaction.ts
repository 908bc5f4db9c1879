const MASK = '***'
const SECRET_WORDS = 'secret|token|password|passwd|credential|authorization|cookie|(?:api|access|private)[_-]?key'
const SECRET_NAME = new RegExp(SECRET_WORDS, 'i')

/** A value in JSON text under a name that holds secrets, or that echoes a request; also one that the text's end has cut off. */
const SECRET_IN_JSON = new RegExp(
  String.raw`("(?:value|input|[\w-]{0,64}(?:${SECRET_WORDS})[\w-]{0,64})"\s*:\s*)"(?:[^"\\]|\\.)*(?:"|\\?$)`,
  'gis',
)

export type Redact = (text: string) => string

/** Hides what the caller knows to be secret and every value of `values`, as it is and as JSON or an address would write it. */
export function createRedactor({ redact, values }: { redact: Redact; values: readonly string[] }): Redact {
  const forms = new Set(values.flatMap(formsOf))
  const longestFirst = [...forms].toSorted((a, b) => b.length - a.length)
  return (text) => longestFirst.reduce((hidden, form) => hidden.replaceAll(form, MASK), redact(text))
}

/** Hides the values of secrets in JSON text, known or not: a deployment's body may carry secrets that this process never had. */
export function hideJsonSecrets(text: string): string {
  return text.replace(SECRET_IN_JSON, `$1"${MASK}"`)
}

/** Values of the headers that carry keys. */
export function secretHeaderValues(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []))
}

/** Secret values in a request's body: `{name, value}` pairs, and strings under names that hold secrets. */
export function secretValuesIn(body: unknown, depth = 0): string[] {
  if (typeof body !== 'object' || body === null || depth > 8) return []
  if (Array.isArray(body)) return body.flatMap((item) => secretValuesIn(item, depth + 1))
  return Object.entries(body).flatMap(([name, value]) => {
    if (typeof value !== 'string') return secretValuesIn(value, depth + 1)
    const secret = SECRET_NAME.test(name) || (name === 'value' && 'name' in body)
    return secret ? [value] : []
  })
}

function formsOf(value: string): string[] {
  // A short value is too common a word to be hidden everywhere; where it stands as a value, hideJsonSecrets finds it.
  if (value.length < 4) return []
  const json = JSON.stringify(value).slice(1, -1)
  const ascii = json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const lines = value.split(/\r?\n/).filter((line) => line !== value && line.length >= 8)
  return [value, json, ascii, encodeURIComponent(value.toWellFormed()), ...lines]
}
