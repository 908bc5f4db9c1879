import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot } from './root.ts'
import { runNode } from './run.ts'

const COMPILED = inRoot('build')

/**
 * Compiles the action and bundles it into `out`: index.js, licenses.txt and package.json. The same sources and lockfile give the
 * same bytes: no minifier, no source map, no cache. Throws with the tool's output when one of the two steps fails.
 */
export async function build(out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  await step('tsc', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'])
  await step('ncc', [
    'node_modules/@vercel/ncc/dist/ncc/cli.js',
    'build',
    join(COMPILED, 'action', 'index.js'),
    '--out',
    out,
    '--license',
    'licenses.txt',
    '--no-cache',
    '--quiet',
  ])
  // Node reads the bundle as an ES module by this file; written here so that it does not depend on the bundler's mind.
  writeFileSync(join(out, 'package.json'), '{\n  "type": "module"\n}\n')
}

async function step(name: string, args: string[]): Promise<void> {
  const { code, output } = await runNode(args)
  if (code !== 0) throw new Error(`${name} failed with exit code ${code}:\n${output}`)
}

if (import.meta.main) {
  rmSync(COMPILED, { recursive: true, force: true })
  const start = performance.now()
  try {
    await build(inRoot('dist'))
    console.log(`built dist/ in ${((performance.now() - start) / 1000).toFixed(1)} s`)
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
