import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { inRoot } from './root.ts'

/** What the release workflow is told: whether there is a release to make, and of what. Tags have a `v` before the version. */
export type ReleasePlan = { release: boolean; version: string; major: string }

/**
 * There is a release to make when the changelog has a heading for the version and no tag of it exists.
 * @throws {Error} when the version is none, or not newer than the newest tag.
 */
export function planRelease({
  version,
  changelog,
  tags,
}: {
  version: string
  changelog: string
  tags: readonly string[]
}): ReleasePlan {
  const parsed = parse(`v${version}`)
  if (parsed === null) throw new Error(`package.json has the version "${version}", which is not like 1.2.3`)
  const plan = { version: `v${version}`, major: `v${parsed[0]}` }
  if (tags.includes(plan.version) || notesOf(changelog, version) === null) return { ...plan, release: false }
  const newest = tags
    .flatMap((tag) => [parse(tag) ?? []])
    .filter((numbers) => numbers.length === 3)
    .toSorted(compare)
    .at(-1)
  if (newest !== undefined && compare(parsed, newest) < 0) {
    throw new Error(`package.json has the version ${version}, which is older than the tag v${newest.join('.')}`)
  }
  return { ...plan, release: true }
}

/** The part of the changelog below the heading of a version; null when there is none. */
export function notesOf(changelog: string, version: string): string | null {
  const [, ...sections] = changelog.split(/^## /m)
  const section = sections.find((one) => one.split(/[\s\n]/)[0]?.replace(/^\[|\]$/g, '') === version)
  return section === undefined ? null : `${section.split('\n').slice(1).join('\n').trim()}\n`
}

function parse(tag: string): number[] | null {
  const found = /^v(\d+)\.(\d+)\.(\d+)$/.exec(tag)
  return found === null ? null : found.slice(1).map(Number)
}

function compare(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((number, place) => number !== other[place])
  return index === -1 ? 0 : (one[index] ?? 0) - (other[index] ?? 0)
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8')) as { version: string }
  const changelog = readFileSync(inRoot('CHANGELOG.md'), 'utf8')
  try {
    if (process.argv[2] === 'notes') process.stdout.write(notesOf(changelog, version) ?? '')
    else {
      const tags = (await text(process.stdin)).split('\n')
      for (const [name, value] of Object.entries(planRelease({ version, changelog, tags }))) console.log(`${name}=${value}`)
    }
  } catch (error) {
    console.error(`::error::${(error as Error).message}`)
    process.exitCode = 1
  }
}
