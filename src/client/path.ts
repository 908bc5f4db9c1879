/** A path with each part encoded, so that no id can reach another route. Throws for a part that names nothing. */
export function pathOf(...parts: readonly string[]): string {
  return parts
    .map((part) => {
      if (part === '' || part === '.' || part === '..') throw new Error(`an id in the path /${parts.join('/')} is '${part}'`)
      return `/${encodeURIComponent(part)}`
    })
    .join('')
}
