import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../../src/platform/database/embedded.ts'
import { openDataDirectory } from '../../../src/platform/data-directory.ts'
import { SILENT } from '../support/database.ts'
import { until } from '../support/processes.ts'

const EMBEDDED = fileURLToPath(new URL('../../../src/platform/database/embedded.ts', import.meta.url))

let folder: string
let directory: string
const open: EmbeddedDatabase[] = []

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'platform-embedded-'))
  directory = path.join(folder, 'database')
})

afterEach(async () => {
  for (const database of open.splice(0)) await database.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<EmbeddedDatabase> {
  const database = await startEmbeddedDatabase({ directory, log: SILENT })
  open.push(database)
  return database
}

async function ask(database: EmbeddedDatabase, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const pidOf = (file = path.join(directory, 'postmaster.pid')) => Number(readFileSync(file, 'utf8').split('\n')[0])
const isAlive = (pid: number) => existsSync(`/proc/${pid}`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))

describe('the embedded database', () => {
  test('keeps what it acknowledged over a stop and over a kill of its processes', async () => {
    const first = await start()
    await ask(first, 'create table kept (value text)')
    await ask(first, "insert into kept values ('stopped')")
    await first.stop()
    const second = await start()
    await ask(second, "insert into kept values ('killed')")
    const lost = second.lost
    process.kill(pidOf(), 'SIGKILL')
    expect((await lost).message).toContain('ended by itself')
    const third = await start()
    expect(await ask(third, 'select value from kept order by value')).toEqual([{ value: 'killed' }, { value: 'stopped' }])
  })

  test('listens on this machine only, asks for its password, and has a private one', async () => {
    const database = await start()
    expect(await ask(database, 'show listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }])
    expect(await ask(database, 'show fsync')).toEqual([{ fsync: 'on' }])
    const wrong = new pg.Client({ connectionString: database.url.replace(/:[^:@/]+@/, ':wrong@') })
    await expect(wrong.connect()).rejects.toThrow('password authentication failed')
    expect(statSync(`${directory}.password`).mode & 0o077).toBe(0)
  })

  test('of a platform that was killed is stopped, and taken over', async () => {
    const program = `
      import { startEmbeddedDatabase } from ${JSON.stringify(EMBEDDED)}
      const log = { debug: () => {}, info: () => {}, warn: () => {} }
      await startEmbeddedDatabase({ directory: ${JSON.stringify(directory)}, log })
      console.log('ready')
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    const survivor = pidOf()
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isAlive(survivor)).toBe(true)
    await ask(await start(), 'select 1')
    expect(isAlive(survivor)).toBe(false)
    expect(pidOf()).not.toBe(survivor)
  })

  test('starts over when its first start was interrupted, wherever', async () => {
    // A cluster half made under its final name, one half made aside, and the password of neither.
    mkdirSync(path.join(directory, 'base'), { recursive: true })
    mkdirSync(`${directory}.new-0badc0de/base`, { recursive: true })
    writeFileSync(`${directory}.password`, 'of an earlier attempt')
    await ask(await start(), 'select 1')
    expect(existsSync(`${directory}.new-0badc0de`)).toBe(false)
  })

  test('starts beside a lock file of before whose number is a stranger’s now', async () => {
    await (await start()).stop()
    writeFileSync(path.join(directory, 'postmaster.pid'), `${process.pid}\n${directory}\n1\n5432\n\n127.0.0.1\n  1 1\nready   \n`)
    expect(await ask(await start(), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('starts below a folder that only its owner can read', async () => {
    chmodSync(folder, 0o700)
    directory = path.join(folder, 'private folder', 'database')
    mkdirSync(path.dirname(directory), { mode: 0o700 })
    expect(await ask(await start(), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('never runs as root', async (context) => {
    if (process.getuid?.() !== 0) context.skip('only root could run it as root')
    await start()
    expect(statSync(`/proc/${pidOf()}`).uid).not.toBe(0)
  })

  test('runs as a user who is not root, as that user', async (context) => {
    if (process.getuid?.() !== 0) context.skip('only root can start a program as somebody else')
    const [uid, gid] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' })))
    const program = `
      import { startEmbeddedDatabase } from ${JSON.stringify(EMBEDDED)}
      const log = { debug: () => {}, info: () => {}, warn: () => {} }
      const database = await startEmbeddedDatabase({ directory: ${JSON.stringify(directory)}, log })
      console.log(process.getuid())
      await database.stop()`
    execFileSync('chown', [`${uid}:${gid}`, folder])
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      uid: uid ?? 0,
      gid: gid ?? 0,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number]
    expect([code, output.trim()]).toEqual([0, String(uid)])
    expect(statSync(directory).uid).toBe(uid)
  })
})

describe('a data directory', () => {
  test('has one platform at a time; that of a killed one is taken over', async () => {
    const data = await openDataDirectory(folder)
    await expect(openDataDirectory(folder)).rejects.toThrow(`another platform (process ${process.pid}) uses ${folder}`)
    await data.release()
    const sleeper = spawn('sleep', ['60'])
    const startedAt = readFileSync(`/proc/${sleeper.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[19]
    const lock = path.join(folder, 'platform.lock')
    writeFileSync(lock, JSON.stringify({ pid: sleeper.pid, startedAt }))
    await expect(openDataDirectory(folder)).rejects.toThrow('another platform')
    sleeper.kill('SIGKILL')
    await until(() => !isAlive(sleeper.pid ?? 0))
    const again = await openDataDirectory(folder)
    expect(again.nodeId).toBe(data.nodeId)
    await again.release()
    // A number that another process has by now.
    writeFileSync(lock, JSON.stringify({ pid: process.pid, startedAt: '1' }))
    await (await openDataDirectory(folder)).release()
  })
})
