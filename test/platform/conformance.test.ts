import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Deployment } from '../../src/contract/deployment.ts'
import { KEY, type PlatformProcess, startPlatformProcess } from './lifecycle-support/platform-process.ts'
import { until } from './support/processes.ts'

/** Parts written by others against the platform: the ecosystem's own command line (hosted service), an OpenAPI validator. */
const folder = mkdtempSync(path.join(tmpdir(), 'platform-command-line-'))
let platform: PlatformProcess
let deployment: Deployment

beforeAll(async () => {
  platform = await startPlatformProcess(path.join(folder, 'data'))
  deployment = await platform.ask<Deployment>('/v2/deployments', {
    method: 'POST',
    body: {
      name: 'from-an-image',
      source: 'external_docker',
      source_config: {},
      source_revision_config: { image_uri: 'registry.example.com/agent:1' },
      secrets: [],
    },
  })
})

afterAll(async () => {
  await platform.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function langgraphjs(...args: string[]): Promise<string> {
  const command = path.resolve('node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs')
  const options = ['--host-url', platform.url, '--api-key', KEY]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [command, 'deploy', ...args, ...options], {
    env: { PATH: process.env['PATH'], HOME: folder, LANGGRAPH_CLI_NO_ANALYTICS: '1' },
    timeout: 30_000,
  })
  return `${stdout}\n${stderr}`
}

test('lists the deployments and the revisions, and deletes', async () => {
  expect(await langgraphjs('list')).toContain('from-an-image')
  expect(await langgraphjs('revisions', 'list', deployment.id)).toContain(deployment.latest_revision_id)
  await langgraphjs('delete', deployment.id, '--force')
  // Deletion is asynchronous.
  await until(async () => !(await langgraphjs('list')).includes('from-an-image'))
})

test('the description of the whole API is valid OpenAPI 3.1, as an independent validator judges', async () => {
  const document = await platform.ask<Record<string, unknown>>('/openapi.json')
  const { valid, errors } = await new Validator().validate(document)
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(Object.keys(document['paths'] as object)).toEqual(
    expect.arrayContaining(['/v2/deployments/{deployment_id}/revisions', '/runs/query', '/api/v1/bulk-exports/destinations']),
  )
})
