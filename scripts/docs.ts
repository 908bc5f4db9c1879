import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { renderActionYml } from '../src/action/registry-yaml.ts'
import { renderFidelityPage } from './fidelity-page.ts'
import { inRoot } from './root.ts'
import { renderSections } from './sections.ts'

/** The files that are written from the code, whole or in part, as they should be. */
function renderFiles(): Record<string, string> {
  return {
    'action.yml': renderActionYml(),
    'README.md': renderReadme(readFileSync(inRoot('README.md'), 'utf8')),
    'docs/fidelity.md': renderFidelityPage(),
  }
}

/** Puts the generated sections between their markers. Throws when a marker is missing: a section nobody sees is a mistake. */
function renderReadme(readme: string): string {
  return Object.entries(renderSections()).reduce((text, [name, section]) => {
    const start = `<!-- ${name}: written by npm run docs -->`
    const end = `<!-- ${name}: end -->`
    const from = text.indexOf(start)
    const to = text.indexOf(end)
    if (from === -1 || to < from) throw new Error(`README.md needs the lines "${start}" and "${end}", in this order`)
    return `${text.slice(0, from + start.length)}\n\n${section}\n\n${text.slice(to)}`
  }, readme)
}

try {
  const files = Object.entries(renderFiles())
  const stale = files.filter(([path, text]) => !existsSync(inRoot(path)) || readFileSync(inRoot(path), 'utf8') !== text)
  if (process.argv.includes('--check')) {
    for (const [path] of stale) console.log(`${path} is not what the code says: run npm run docs and commit it`)
    process.exitCode = stale.length === 0 ? 0 : 1
  } else {
    for (const [path, text] of stale) writeFileSync(inRoot(path), text)
    console.log(stale.length === 0 ? 'nothing to write' : `wrote ${stale.map(([path]) => path).join(', ')}`)
  }
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
