import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inRoot } from './root.ts'

/**
 * Takes the part of GitHub's own description of its REST API that the tests judge requests and answers by, from npm's `@octokit/openapi`.
 * The package itself has 385 MB, which nobody should install to run the tests: `node scripts/github-description.ts` fetches it, copies the
 * operations below with everything that they refer to, unchanged, and forgets it.
 */

const PACKAGE = '@octokit/openapi@23.0.2'
const FILE = inRoot('test', 'support', 'github-double', 'github-openapi.json')
const OPERATIONS = [
  'issues/create-comment',
  'issues/delete-comment',
  'issues/list-comments',
  'issues/update-comment',
  'git/get-ref',
  'git/get-tag',
  'pulls/get',
  'pulls/list',
  'repos/create-deployment',
  'repos/create-deployment-status',
  'repos/list-deployments',
  'repos/list-deployment-statuses',
]
const EXAMPLES = [
  'pull-request',
  'pull-request-simple-items',
  'issue-comment',
  'deployment-simple-example',
  'deployment-status',
  'git-ref',
  'git-tag',
]
/** What the double answers with, and judges refusals by. */
const COMPONENTS = ['/components/schemas/basic-error', ...EXAMPLES.map((name) => `/components/examples/${name}`)]

type Json = Record<string, unknown>

const folder = mkdtempSync(join(tmpdir(), 'github-description-'))
try {
  execFileSync('npm', ['pack', PACKAGE, '--silent', '--pack-destination', folder], { stdio: ['ignore', 'ignore', 'inherit'] })
  execFileSync('tar', ['-xzf', join(folder, 'octokit-openapi-23.0.2.tgz'), '-C', folder, 'package/generated/api.github.com.json'])
  const whole = JSON.parse(readFileSync(join(folder, 'package/generated/api.github.com.json'), 'utf8')) as Json
  writeFileSync(FILE, `${JSON.stringify(partOf(whole))}\n`)
  console.log(`wrote ${FILE}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function partOf(whole: Json): Json {
  const part: Json = { openapi: whole['openapi'], info: whole['info'], 'x-taken-from': PACKAGE, paths: {}, components: {} }
  const missing = new Set(OPERATIONS)
  for (const [path, item] of Object.entries(whole['paths'] as Record<string, Json>)) {
    for (const [method, operation] of Object.entries(item)) {
      const { operationId } = operation as { operationId?: string }
      if (operationId === undefined || !missing.delete(operationId)) continue
      put(part, ['paths', path, method], operation)
      copyReferences(whole, part, operation)
    }
  }
  if (missing.size > 0) throw new Error(`GitHub describes no ${[...missing].join(', ')}`)
  for (const pointer of COMPONENTS) copyReferences(whole, part, { $ref: `#${pointer}` })
  return part
}

/** Copies whatever `value` refers to, and what that refers to, to the same place in `part`. */
function copyReferences(whole: Json, part: Json, value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (key !== '$ref' || typeof below !== 'string') {
      copyReferences(whole, part, below)
      continue
    }
    const keys = below.split('/').slice(1)
    if (at(part, keys) !== undefined) continue
    const target = at(whole, keys)
    put(part, keys, target)
    copyReferences(whole, part, target)
  }
}

function at(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((here, key) => (here as Json | undefined)?.[key], value)
}

function put(value: Json, keys: readonly string[], leaf: unknown): void {
  const last = keys.at(-1) ?? ''
  const parent = keys.slice(0, -1).reduce((here, key) => (here[key] ??= {}) as Json, value)
  parent[last] = leaf
}
