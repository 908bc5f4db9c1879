import { readdirSync, readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { MULTIPART_BYTES_MAX } from '../../../src/contract/ingest.ts'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { askDuckDb, describeFile, readWithHyparquet } from './support/readers.ts'
import { addRun, DAY } from './support/runs.ts'
import { setExportScene } from './support/scene.ts'
import type { ExportWorld } from './support/world.ts'

/** Resident memory of all that exports, whatever it exports. */
const MEMORY_MAX = 768e6
const MB = 1_000_000

const scene = setExportScene()
const makeWorld = () => scene.makeWorld({ runs: 90, settings: { requestLimitMs: 60_000, leaseMs: 30_000 } })

/** A run with so many bytes in each of some fields: JSON with everything in it that has to be escaped somewhere. */
async function addLargeRun(world: ExportWorld, bytes: number, fields: readonly string[]): Promise<string> {
  const place = { workspace_id: world.workspace.id, session_id: world.projectId }
  const id = await addRun(scene.database.db, { ...place, start_time: `${DAY}T05:00:00Z` })
  const piece = String.raw`a \"b\" \\ \u0001 ä \ud83d\ude00, "`.slice(0, -1)
  for (const field of fields) {
    const times = Math.floor((bytes - 40) / Buffer.byteLength(piece))
    const value = sql`'{"of": "' || ${field}::text || '", "text": "' || repeat(${piece}::text, ${times}::int) || '"}'`
    await sql`update runs set ${sql.ref(field)} = ${value} where id = ${id}`.execute(scene.database.db)
  }
  return id
}

/** The most memory that the processes that write files have had, in bytes. */
function watchWriters(): () => number {
  let peak = 0
  const look = () => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1]
        // In a cluster the writers are children of its nodes, and no other test runs.
        const ours = CLUSTERED || parent === String(process.pid)
        if (!ours || !readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('writer-process')) continue
        peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024)
      } catch {
        // It has ended meanwhile.
      }
    }
  }
  const timer = setInterval(look, 20)
  return () => {
    clearInterval(timer)
    return peak
  }
}

/** What the store has of a field, as its length and a hash of it. */
async function stored(id: string, field: string): Promise<{ bytes: number; hash: string }> {
  const { rows } = await sql<{ bytes: number; hash: string }>`
    select octet_length(${sql.ref(field)}) as bytes, md5(${sql.ref(field)}) as hash from runs where id = ${id}`.execute(
    scene.database.db,
  )
  return rows[0] as { bytes: number; hash: string }
}

describe('a row too large for memory', () => {
  it.each(
    ['v1', 'v2_beta'].flatMap((format) => ['none', 'gzip', 'snappy', 'zstandard'].map((codec) => [format, codec] as const)),
  )('is in %s with %s what it is in the store, in a file of its own, to two readers', async (format_version, compression) => {
    const world = await makeWorld()
    const id = await addLargeRun(world, 5 * MB, ['inputs', 'error'])
    const ended = await world.run({ format_version, compression })
    expect(ended).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 91, files_exported: 3 } })
    const files = await scene.filesOf(world, ended.id)
    const rows = await askDuckDb(
      files,
      `select id, name, md5(inputs::VARCHAR) as inputs, md5(error) as error, tags::VARCHAR as tags, is_root, outputs from read_parquet(FILES)`,
    )
    expect(rows.length).toBe(91)
    expect(rows.find((row) => row['id'] === id)).toMatchObject({
      name: 'one',
      inputs: (await stored(id, 'inputs')).hash,
      error: (await stored(id, 'error')).hash,
      tags: '[]',
      is_root: true,
      outputs: null,
    })
    const [, file = ''] = files
    const [alone, ...others] = await readWithHyparquet(file)
    expect(others).toEqual([])
    expect(Buffer.byteLength(String(alone?.['error']))).toBe((await stored(id, 'error')).bytes)
    const inputs = alone?.['inputs']
    expect(typeof inputs === 'string' ? JSON.parse(inputs) : inputs).toMatchObject({ of: 'inputs' })
    // The file says of its columns what the others say of theirs.
    const [small, large] = [await describeFile(files[0] ?? ''), await describeFile(file)]
    expect(large.columns).toEqual(small.columns)
    expect(large.codecs).toEqual(small.codecs)
  })

  it.for([
    [10 * MB, ['inputs']],
    [20 * MB, ['inputs']],
    [40 * MB, ['inputs']],
    // Most that one request to ingest can bring, and most that a run can come to by a request for each of its fields.
    [MULTIPART_BYTES_MAX, ['inputs']],
    [MULTIPART_BYTES_MAX, ['inputs', 'outputs', 'error', 'extra', 'events']],
  ] as [number, string[]][])(
    'of %i bytes in %j is exported in bounded memory',
    { timeout: 120_000 },
    async ([bytes, fields], context) => {
      if (process.platform !== 'linux') context.skip('the memory of other processes is read from /proc, which Linux alone has')
      const world = await makeWorld()
      const id = await addLargeRun(world, bytes, fields)
      const peakOf = watchWriters()
      const before = process.memoryUsage().rss
      const ended = await world.run({ format_version: 'v2_beta' })
      const own = Math.max(0, process.memoryUsage().rss - before)
      const peak = peakOf()
      if (process.env['BENCH_VERBOSE'])
        process.stdout.write(`${bytes * fields.length} bytes: writer ${peak / MB} MB, this process ${own / MB} MB more\n`)
      expect(ended).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 91 } })
      expect(peak).toBeGreaterThan(0)
      expect(peak + own).toBeLessThan(MEMORY_MAX)
      const files = await scene.filesOf(world, ended.id)
      const columns = fields.map((field) => `md5(${field}::VARCHAR) as ${field}`)
      const [row] = await askDuckDb(files, `select ${columns.join(', ')} from read_parquet(FILES) where id = '${id}'`)
      for (const field of fields) expect(row?.[field]).toBe((await stored(id, field)).hash)
    },
  )
})
