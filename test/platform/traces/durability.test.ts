import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startPlatform } from '../../support/platform.ts'
import { makeMultipart, makeRun, MULTIPART_HEADERS, runParts } from './support/runs.ts'

const SERVER = fileURLToPath(new URL('support/trace-server.ts', import.meta.url))
const ROUNDS = 3

async function start(directory: string, key: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [SERVER, directory, key], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string]
  return { child, url: (JSON.parse(line) as { url: string }).url }
}

/** The service and its database, at once: nothing gets to finish what it was doing. */
async function killBoth(directory: string, child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  const [postmaster] = (await readFile(path.join(directory, 'database', 'postmaster.pid'), 'utf8')).split('\n')
  child.kill('SIGKILL')
  process.kill(Number(postmaster), 'SIGKILL')
  await exited
}

test('what was acknowledged survives kill -9 of the service and of its database', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'durability-'))
  const key = `key-${randomUUID()}`
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const acknowledged: string[] = []
  let { child, url } = await start(directory, key)
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      let killed = false
      const senders = Array.from({ length: 4 }, async () => {
        while (!killed) {
          const runs = Array.from({ length: 5 }, () => makeRun({ session_name: 'durable' }))
          const answer = await fetch(`${url}/runs/batch`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ post: runs }),
          }).catch(() => null)
          if (answer?.status === 202) acknowledged.push(...runs.map(({ id }) => id))
        }
      })
      const target = acknowledged.length + 100
      while (acknowledged.length < target) await new Promise((resolve) => setTimeout(resolve, 5))
      await killBoth(directory, child)
      killed = true
      await Promise.all(senders)
      ;({ child, url } = await start(directory, key))
    }
    const found = new Set<string>()
    for (let index = 0; index < acknowledged.length; index += 100) {
      const id = acknowledged.slice(index, index + 100)
      const answer = await fetch(`${url}/runs/query`, { method: 'POST', headers, body: JSON.stringify({ id, select: ['id'] }) })
      for (const run of ((await answer.json()) as { runs: { id: string }[] }).runs) found.add(run.id)
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(300)
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([])
  } finally {
    await killBoth(directory, child)
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
})

test('kill -9 of the whole platform right after a 202 loses nothing', async () => {
  const platform = await startPlatform({ args: ['--rate-limits', 'off'] })
  try {
    for (let round = 0; round < 2; round += 1) {
      const run = makeRun({ session_name: 'platform' })
      const answer = await fetch(`${platform.url}/api/v1/runs/multipart`, {
        method: 'POST',
        headers: { ...MULTIPART_HEADERS, 'x-api-key': platform.apiKey, 'x-tenant-id': platform.workspaceId },
        body: Uint8Array.from(makeMultipart(runParts('post', run))),
      })
      expect(answer.status).toBe(202)
      await platform.kill9()
      await platform.restart()
      const found = await fetch(`${platform.url}/runs/${run.id}`, { headers: { 'x-api-key': platform.apiKey } })
      expect(await found.json()).toMatchObject({ id: run.id, inputs: { question: 'why' }, tenant_id: platform.workspaceId })
    }
  } finally {
    await platform.dispose()
  }
})
