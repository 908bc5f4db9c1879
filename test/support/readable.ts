/** A job summary as a person reads it: without the entities that keep text from being Markdown, and could hide a secret. */
export function readable(summary: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&' }
  return summary.replace(/&(?:#(\d+)|(lt|gt|quot|amp));/g, (_, code: string | undefined, name: string | undefined) =>
    code === undefined ? (named[name ?? ''] ?? '') : String.fromCodePoint(Number(code)))
}
