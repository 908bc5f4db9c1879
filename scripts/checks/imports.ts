import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectFiles } from '../files.ts'
import { inRoot } from '../root.ts'
import { report } from './faults.ts'

/** Which way the arrows point: a folder of src and the folders that it may import. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  contract: ['contract'],
  client: ['client', 'contract'],
  action: ['action', 'client', 'contract'],
  platform: ['platform', 'contract'],
}

/** The packages of a folder that is not free to choose: the contract does no I/O, and needs nothing but its schemas. */
const MAY_USE: Record<string, readonly string[]> = { contract: ['zod'] }

const IMPORT = /(?:^|\s)(?:import|export)\s(?:[^'"]*?\sfrom\s)?\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g

function faultsOf(path: string): string[] {
  const folder = path.split('/')[1] ?? ''
  const allowed = MAY_IMPORT[folder]
  if (allowed === undefined) return []
  const source = readFileSync(inRoot(path), 'utf8')
  return [...source.matchAll(IMPORT)].flatMap((match) => {
    const specifier = match[1] ?? match[2] ?? ''
    const line = source.slice(0, match.index).split('\n').length + (match[0].startsWith('\n') ? 1 : 0)
    const fault = specifier.startsWith('.') ? wrongWay(path, specifier, allowed) : wrongPackage(folder, specifier)
    return fault === undefined ? [] : [`${path}:${line}: ${fault}`]
  })
}

function wrongWay(path: string, specifier: string, allowed: readonly string[]): string | undefined {
  const target = join(dirname(path), specifier).replaceAll('\\', '/')
  const [top, folder] = target.split('/')
  if (top === 'src' && folder !== undefined && allowed.includes(folder)) return undefined
  return `${specifier} leads to ${target}; files here may import ${allowed.map((name) => `src/${name}`).join(', ')} only`
}

function wrongPackage(folder: string, specifier: string): string | undefined {
  const packages = MAY_USE[folder]
  if (packages === undefined || packages.includes(specifier)) return undefined
  return `${specifier} is not for src/${folder}, which may use ${packages.join(', ')} only`
}

report(
  projectFiles('src')
    .filter((path) => path.endsWith('.ts'))
    .flatMap(faultsOf),
)
