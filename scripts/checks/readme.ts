import { existsSync, readFileSync } from 'node:fs'
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

/** The commands of a script, once its comments and its preparation are left out. */
function commandOf(script: string): string {
  return script
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('set ') && !line.startsWith('cd '))
    .join('\n')
}

/** Every link inside the repository leads to a file, or to an anchor of this page. */
function linkFaults(): string[] {
  const headings = [...readme.matchAll(/^#+ (.+)$/gm)].map((match) => slug(match[1] ?? ''))
  const named = [...readme.matchAll(/<a name="([^"]+)">/g)].map((match) => match[1] ?? '')
  const anchors = new Set([...headings, ...named])
  const targets = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '').filter((target) => !/^\w+:/.test(target))
  return [...new Set(targets)]
    .filter((target) => !(target.startsWith('#') ? anchors.has(target.slice(1)) : existsSync(inRoot(target.split('#')[0] ?? ''))))
    .map((target) => `README.md links to ${target}, which is not there`)
}

/** The anchor that GitHub gives a heading. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

report([...testCommandFaults(), ...linkFaults()])
