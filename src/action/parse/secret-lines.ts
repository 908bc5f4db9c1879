import { RESERVED_SECRET_NAMES, SECRET_NAME_PATTERN, SECRETS_MAX, type Secret, secretSchema } from '../../contract/secret.ts'

export const SECRET_LINES_RULE =
  'lines NAME=value, each value literal up to the end of its line; NAME<<END … END for a value of several lines; ' +
  'blank lines and lines that begin with # are skipped'

/** What nobody takes for a piece of a secret. */
const CONVENTIONAL_NAME = /^[A-Z][A-Z0-9_]*$/

export type SecretLines = {
  secrets: Secret[]
  /** Clauses that name the line, never its text. */
  problems: string[]
  /** Everything that could be a secret, whether it was understood or not: to be masked before the problems are printed. */
  sensitive: string[]
}

/** Reads the input `secrets`. A text that is not understood is never quoted: it may be the rest of a value. */
export function parseSecretLines(text: string): SecretLines {
  const result: SecretLines = { secrets: [], problems: [], sensitive: [] }
  const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
  const seen = new Map<string, number>()
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (/^\s*(#|$)/.test(line)) continue
    const number = index + 1
    const entry = splitLine(line)
    if (entry === undefined) {
      result.sensitive.push(line)
      result.problems.push(`line ${number} is neither NAME=value nor NAME<<END (a value of several lines needs NAME<<END)`)
      continue
    }
    let { value } = entry
    if (entry.end !== undefined) {
      const last = lines.indexOf(entry.end, index + 1)
      value = lines.slice(index + 1, last === -1 ? undefined : last).join('\n')
      index = last === -1 ? lines.length : last
      if (last === -1) result.problems.push(`line ${number}: the value of ${entry.name} has no end line`)
    }
    result.sensitive.push(value)
    // The last line of a key in base64 looks like a name without a value.
    if (value.trim() === '' && !CONVENTIONAL_NAME.test(entry.name)) result.sensitive.push(entry.name)
    const problem = faultOf(entry.name, value)
    if (problem !== undefined) result.problems.push(`line ${number}: ${problem}`)
    const earlier = seen.get(entry.name)
    if (earlier !== undefined) result.problems.push(`line ${number}: ${entry.name} is there already, in line ${earlier}`)
    seen.set(entry.name, number)
    result.secrets.push({ name: entry.name, value })
  }
  if (result.secrets.length > SECRETS_MAX)
    result.problems.push(`there are ${result.secrets.length} variables, and ${SECRETS_MAX} at most`)
  return result
}

function splitLine(line: string): { name: string; value: string; end?: string } | undefined {
  const match = /^\s*([A-Za-z_][A-Za-z0-9_]*)[ \t]*(=|<<)(.*)$/s.exec(line)
  if (match === null) return undefined
  const [, name = '', sign, rest = ''] = match
  if (sign === '=') return { name, value: rest }
  const end = rest.trim()
  return end === '' ? undefined : { name, value: '', end }
}

function faultOf(name: string, value: string): string | undefined {
  if (!SECRET_NAME_PATTERN.test(name)) return 'the name is not one of an environment variable'
  if (RESERVED_SECRET_NAMES.has(name)) return `${name} is reserved: the service sets it itself`
  if (value.trim() === '') {
    const shown = CONVENTIONAL_NAME.test(name) ? name : 'the variable'
    return `${shown} has no value (a secret that does not exist in this repository is an empty text)`
  }
  if (value.includes('\0')) return `the value of ${name} contains a NUL character`
  return secretSchema.safeParse({ name, value }).success ? undefined : `the name or the value of ${name.slice(0, 40)} is too long`
}
