const NAMED: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&' }

/** A job summary as text for a terminal: tags gone, character references resolved, the Markdown left as it is. */
export function readable(summary: string): string {
  return summary
    .replace(/<summary>/g, '▸ ')
    .replace(/<\/?[a-z][^>]*>/g, '')
    .replace(/&(?:#(\d+)|([a-z]+));/g, (whole, code: string | undefined, name: string | undefined) =>
      code === undefined ? (NAMED[name ?? ''] ?? whole) : String.fromCodePoint(Number(code)),
    )
}
