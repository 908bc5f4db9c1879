import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectFiles } from '../files.ts'
import { inRoot } from '../root.ts'
import { report } from './faults.ts'

/** The test command in the README: the first line of the code block below the marker. */
const TEST_COMMAND = /<!-- test command -->\s*```(?:sh|bash)\n([^\n]+)\n/

const readme = readFileSync(inRoot('README.md'), 'utf8')

/** CI runs exactly what the README tells people to run. */
function testCommandFaults(): string[] {
  const documented = TEST_COMMAND.exec(readme)?.[1]
  const run = commandOf(readFileSync(inRoot('.ci/run'), 'utf8'))
  const ci = readFileSync(inRoot('.github/workflows/ci.yml'), 'utf8')
  return [
    ...(documented === run ? [] : [`README.md says "${documented ?? 'nothing'}" below <!-- test command -->, .ci/run runs "${run}"`]),
    ...(ci.includes('run: .ci/run') ? [] : ['.github/workflows/ci.yml does not run .ci/run']),
  ]
}

/** The commands of a script, once its comments and its preparation (the optional servers among it) are left out. */
function commandOf(script: string): string {
  return script
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('set ') && !line.startsWith('cd ') && line !== '.ci/packages')
    .join('\n')
}

/** Every link inside the repository leads to a file, and to an anchor of it where it names one. */
function linkFaults(page: string): string[] {
  const targets = [...readFileSync(inRoot(page), 'utf8').matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
  return [...new Set(targets)]
    .filter((target) => !/^\w+:/.test(target) && !isThere(page, target))
    .map((target) => `${page} links to ${target}, which is not there`)
}

function isThere(page: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : join(dirname(page), path)
  if (!existsSync(inRoot(file))) return false
  return anchor === undefined || !file.endsWith('.md') || anchorsOf(file).has(anchor)
}

function anchorsOf(page: string): Set<string> {
  const text = readFileSync(inRoot(page), 'utf8')
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map((match) => slug(match[1] ?? ''))
  const named = [...text.matchAll(/<a name="([^"]+)">/g)].map((match) => match[1] ?? '')
  return new Set([...headings, ...named])
}

/** The anchor that GitHub gives a heading. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...projectFiles('docs').filter((path) => path.endsWith('.md'))]

report([...testCommandFaults(), ...PAGES.flatMap(linkFaults)])
