/** What the runner has learnt to hide, and the hiding itself (actions/runner: SecretMasker.cs, ValueEncoders.cs). One per job. */
export type SecretMasker = {
  add: (value: string) => void
  mask: (text: string) => string
  /** The values as they were added, without their encoded forms. */
  values: () => string[]
}

export function createSecretMasker(initial: readonly string[] = []): SecretMasker {
  const originals = new Set<string>()
  const needles = new Set<string>()
  const add = (value: string) => {
    if (value === '' || originals.has(value)) return
    originals.add(value)
    needles.add(value)
    for (const form of encodedForms(value)) if (form !== '') needles.add(form)
  }
  for (const value of initial) add(value)
  return { add, mask: (text) => replaceAll(text, needles), values: () => [...originals] }
}

/** The forms of a secret that the runner hides besides the secret itself. */
export function encodedForms(value: string): string[] {
  const bytes = Buffer.from(value)
  const shifted = [0, 1, 2].map((shift) => (bytes.length > shift ? bytes.subarray(shift) : bytes).toString('base64'))
  return [
    ...shifted,
    value.replaceAll('"', '\\"'),
    value.replaceAll("'", "''"),
    JSON.stringify(value).slice(1, -1),
    uriForm(value),
    xmlForm(value),
    value.length > 8 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : '',
    beforeAmpersand(value),
    afterAmpersand(value),
  ]
}

/** `encodeURIComponent`, and the five characters that .NET's `Uri.EscapeDataString` escapes besides. */
function uriForm(value: string): string {
  const encoded = encodeURIComponent(value.toWellFormed())
  return encoded.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function xmlForm(value: string): string {
  const entities: Record<string, string> = { '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;', '&': '&amp;' }
  return value.replace(/[<>"'&]/g, (char) => entities[char] ?? char)
}

function beforeAmpersand(value: string): string {
  if (!value.includes('&')) return ''
  const section = value.includes('&+') ? value.slice(0, value.indexOf('&+') + 2) : value.slice(0, value.lastIndexOf('&') + 1)
  return section.length >= 6 ? section : ''
}

function afterAmpersand(value: string): string {
  if (!value.includes('&')) return ''
  const section = value.includes('&+') ? value.slice(value.indexOf('&+') + 3) : value.slice(value.lastIndexOf('&') + 1)
  return section.length >= 6 ? section : ''
}

/** Every occurrence of every needle, overlapping and adjoining ones together, becomes one `***`. */
function replaceAll(text: string, needles: ReadonlySet<string>): string {
  const ranges: [start: number, end: number][] = []
  for (const needle of needles) {
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) ranges.push([at, at + needle.length])
  }
  if (ranges.length === 0) return text
  ranges.sort((a, b) => a[0] - b[0])
  let masked = ''
  let position = 0
  let [start, end] = ranges[0] as [number, number]
  for (const [nextStart, nextEnd] of [...ranges.slice(1), [Infinity, Infinity] as [number, number]]) {
    if (nextStart <= end) {
      end = Math.max(end, nextEnd)
      continue
    }
    masked += `${text.slice(position, start)}***`
    position = end
    start = nextStart
    end = nextEnd
  }
  return masked + text.slice(position)
}
