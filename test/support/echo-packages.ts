import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ECHO_AGENT = fileURLToPath(new URL('../../examples/echo-agent', import.meta.url))
const MANIFEST = { name: 'echo-agent', version: '1.0.0' }

/**
 * The `node_modules` of the example agent, installed once on this machine for its lockfile. Tests that are not about the install link it:
 * five thousand files fewer for each build.
 */
export async function echoPackages(): Promise<string> {
  const lockfile = await readFile(path.join(ECHO_AGENT, 'package-lock.json'))
  const key = createHash('sha256').update(lockfile).update(process.version).digest('hex').slice(0, 16)
  const packages = path.join(tmpdir(), `echo-agent-${key}`)
  if (!existsSync(packages)) await install(packages)
  return path.join(packages, 'node_modules')
}

/** Made aside and moved into place: several test files may do it at once, and one may be interrupted. */
async function install(packages: string): Promise<void> {
  const aside = await mkdtemp(`${packages}-`)
  try {
    const fresh = path.join(aside, 'fresh')
    await mkdir(fresh)
    for (const file of ['package.json', 'package-lock.json']) await cp(path.join(ECHO_AGENT, file), path.join(fresh, file))
    await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: fresh })
    await rename(fresh, packages)
  } catch (error) {
    // Another one was sooner.
    if (!existsSync(packages)) throw error
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

/** Files for a repository of the example agent, whose install links the packages. */
export async function linkedPackages(): Promise<Record<string, string>> {
  const link = `rm -rf node_modules && ln -s '${await echoPackages()}' node_modules`
  const root = { ...MANIFEST, hasInstallScript: true }
  return {
    'package.json': JSON.stringify({ ...MANIFEST, private: true, type: 'module', scripts: { postinstall: link } }),
    'package-lock.json': JSON.stringify({ ...MANIFEST, lockfileVersion: 3, requires: true, packages: { '': root } }),
  }
}
