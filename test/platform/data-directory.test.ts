import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDataDirectory } from '../../src/platform/data-directory.ts'

let folder: string
beforeEach(async () => {
  folder = path.join(await mkdtemp(path.join(tmpdir(), 'platform-data-')), 'data')
})
afterEach(() => rm(path.dirname(folder), { recursive: true, force: true }))

describe('a data directory', () => {
  it('is made for its owner alone, and has one name over restarts', async () => {
    const first = await openDataDirectory(folder)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect((await stat(first.builds)).isDirectory()).toBe(true)
    await first.release()
    const second = await openDataDirectory(folder)
    expect(second.nodeId).toBe(first.nodeId)
    await second.release()
    expect((await readdir(folder)).toSorted()).toEqual(['builds', 'cache', 'node-id'])
  })

  it('serves one platform at a time', async () => {
    const first = await openDataDirectory(folder)
    await expect(openDataDirectory(folder)).rejects.toThrow(`another platform (process ${process.pid}) uses ${folder}`)
    await first.release()
    await (await openDataDirectory(folder)).release()
  })

  it('serves one of many that start together', async () => {
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => openDataDirectory(folder)))
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it.each([
    ['of a process that has ended', () => ({ pid: Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' })), startedAt: 'x' })],
    ['of a process whose number another one has now', () => ({ pid: process.pid, startedAt: 'long ago' })],
    ['that is damaged', () => 'half a lo'],
  ])('takes over a lock %s', async (_what, content) => {
    await (await openDataDirectory(folder)).release()
    await writeFile(path.join(folder, 'platform.lock'), JSON.stringify(content()))
    const taken = await openDataDirectory(folder)
    expect(JSON.parse(await readFile(path.join(folder, 'platform.lock'), 'utf8'))).toMatchObject({ pid: process.pid })
    await taken.release()
  })
})
