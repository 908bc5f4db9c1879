import { stat } from 'node:fs/promises'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { EXPORTABLE_FIELDS } from '../../../src/contract/exportable-fields.ts'
import { askDuckDb, describeFile, readWithHyparquet, type Row } from './support/readers.ts'
import { addRun, DAY } from './support/runs.ts'
import { setExportScene } from './support/scene.ts'
import { comparable, normalise, storedRuns } from './support/store.ts'

const scene = setExportScene()

const byId = (rows: readonly Row[]) => new Map(rows.map((row) => [String(row['id']), normalise(row)]))

describe('an export', () => {
  it.each(['v1', 'v2_beta'])(
    'in %s is equal to the store, row for row and field for field, to two readers',
    async (format_version) => {
      const world = await scene.makeWorld({ runs: 1000, settings: { fileRows: 300, groupRows: 100 } })
      const place = { workspace_id: world.workspace.id, session_id: world.projectId }
      const nasty = [
        { error: '\u0001quote\u0001 \u0002delimiter\u0002\r\nand lines\n', name: '\\N' },
        { error: '', name: '', inputs: '""', tags: ['\\N', '', '\\.', 'a,b', "it's"] },
        {
          inputs: JSON.stringify({ deep: '\\"\\n\u2028', nul: '\u0000' }).replaceAll('\\u0000', ''),
          outputs: '[1e400, -0, 1.50]',
          error: '\\.',
        },
        { end_time: '9999-12-31T23:59:59.999999Z', total_cost: '123456789.5', total_tokens: '9007199254740993' },
        { reference_example_id: world.projectId, dotted_order: null, name: '\u{1F600}'.repeat(50) },
      ]
      for (const [index, columns] of nasty.entries())
        await addRun(scene.database.db, { ...place, start_time: `${DAY}T12:00:00.00000${index}Z`, ...columns })
      const stored = await storedRuns(scene.database.db, world.projectId)
      const [first, second] = [...stored.keys()]
      await sql`insert into feedback (workspace_id, id, run_id, key, score, value) values
      (${world.workspace.id}, gen_random_uuid(), ${first}, 'kind', 0.5, '"good"'),
      (${world.workspace.id}, gen_random_uuid(), ${second}, 'kind', 1, null)`.execute(scene.database.db)
      const expected = new Map(
        [...(await storedRuns(scene.database.db, world.projectId))].map(([id, row]) => [id, comparable(row)]),
      )
      if (format_version === 'v1') {
        // A nanosecond since 1970 does not reach the year 9999.
        for (const row of expected.values()) if (String(row['end_time']).length > 16) row['end_time'] = null
      }

      const ended = await world.run({ format_version })
      expect(ended).toMatchObject({
        status: 'COMPLETED',
        progress: { rows_exported: 1005, runs_done: 1, estimated_seconds_left: 0 },
      })
      const files = await scene.filesOf(world, ended.id)
      expect(files.length).toBe(4)
      const columns = EXPORTABLE_FIELDS.map((field) =>
        field.endsWith('_time')
          ? `epoch_us(${field}) as ${field}`
          : field === 'total_cost'
            ? `${field}::VARCHAR as ${field}`
            : field,
      )
      const duck = await askDuckDb(files, `select ${columns.join(', ')} from read_parquet(FILES)`)
      expect(duck.length).toBe(1005)
      const fromDuck = byId(duck.map((row) => ({ ...row, ...epochs(row) })))
      for (const [id, row] of expected) expect(fromDuck.get(id)).toEqual(row)

      const rows: Row[] = []
      for (const file of files) rows.push(...(await readWithHyparquet(file)))
      expect(rows.length).toBe(1005)
      const fromHyparquet = byId(rows)
      for (const [id, row] of expected)
        expect(toMilliseconds(fromHyparquet.get(id) ?? {})).toEqual(toMilliseconds(withParsedJson(row, format_version)))
      for (const file of files) expect(Object.keys((await describeFile(file)).columns)).toEqual([...EXPORTABLE_FIELDS])
    },
  )

  it('has in v1 the types of the hosted service, and in v2_beta richer ones', async () => {
    const world = await scene.makeWorld({ runs: 10 })
    const columnsOf = async (format_version: string) => {
      const [file = ''] = await scene.filesOf(world, (await world.run({ format_version })).id)
      return (await describeFile(file)).columns
    }
    const text = 'BYTE_ARRAY UTF8'
    const v1 = await columnsOf('v1')
    expect(v1).toMatchObject({ id: text, inputs: text, tags: text, parent_run_ids: text, feedback_stats: text, trace_tier: text })
    expect(v1['start_time']).toBe('INT64 {"type":"TIMESTAMP","isAdjustedToUTC":false,"unit":"NANOS"}')
    expect(v1).toMatchObject({ is_root: 'BOOLEAN', total_tokens: 'INT64 INT_64', total_cost: 'DOUBLE' })
    const v2 = await columnsOf('v2_beta')
    expect(v2['start_time']).toBe('INT64 {"type":"TIMESTAMP","isAdjustedToUTC":true,"unit":"MICROS"}')
    expect(v2['inputs']).toMatch(/^BYTE_ARRAY .*JSON/)
    expect(v2).toMatchObject({ id: text, tags: 'group LIST', parent_run_ids: 'group LIST' })
    expect(v2['total_cost']).toMatch(/DECIMAL.*38.*18|DECIMAL.*18.*38/)
  })

  it.each([
    ['none', 'UNCOMPRESSED'],
    ['gzip', 'GZIP'],
    ['snappy', 'SNAPPY'],
    ['zstandard', 'ZSTD'],
    [undefined, 'ZSTD'],
  ])('is compressed with %s as %s', async (compression, codec) => {
    const world = await scene.makeWorld({ runs: 50 })
    const [file = ''] = await scene.filesOf(world, (await world.run(compression === undefined ? {} : { compression })).id)
    expect((await describeFile(file)).codecs).toEqual([codec])
    expect(await readWithHyparquet(file)).toHaveLength(50)
  })

  it('carries the fields that were asked for, in their own order', async () => {
    const world = await scene.makeWorld({ runs: 20 })
    const workers = await world.startWorkers()
    const subsets = fc.uniqueArray(fc.constantFrom(...EXPORTABLE_FIELDS), { minLength: 1 })
    await fc.assert(
      fc.asyncProperty(subsets, fc.constantFrom('v1', 'v2_beta'), async (export_fields, format_version) => {
        const { id } = await world.createExport({ export_fields, format_version })
        expect(await world.end(id)).toMatchObject({ status: 'COMPLETED', export_fields })
        const [file = ''] = await scene.filesOf(world, id)
        expect(Object.keys((await describeFile(file)).columns)).toEqual(
          EXPORTABLE_FIELDS.filter((field) => export_fields.includes(field)),
        )
        expect(await readWithHyparquet(file)).toHaveLength(20)
      }),
      { numRuns: 6 },
    )
    await workers.stop()
  })

  it('keeps a single column apart from nothing: rows whose only field is empty or null are rows', async () => {
    const world = await scene.makeWorld()
    const place = { workspace_id: world.workspace.id, session_id: world.projectId, start_time: `${DAY}T01:00:00Z` }
    for (const error of ['', null, 'x', '']) await addRun(scene.database.db, { ...place, error })
    const [file = ''] = await scene.filesOf(world, (await world.run({ export_fields: ['error'] })).id)
    const errors = (await readWithHyparquet(file)).map((row) => row['error'])
    expect(errors.toSorted()).toEqual(['', '', 'x', null].toSorted())
  })

  it('takes the runs that the filter finds, hostile texts and all', async () => {
    const world = await scene.makeWorld({ runs: 60 })
    const hostile = `'; drop table runs; -- $1 \\' "x"`
    const place = { workspace_id: world.workspace.id, session_id: world.projectId, start_time: `${DAY}T01:00:00Z` }
    const id = await addRun(scene.database.db, { ...place, name: hostile })
    const found = await world.run({ filter: `eq(name, ${JSON.stringify(hostile)})` })
    expect(found.progress.rows_exported).toBe(1)
    const [file = ''] = await scene.filesOf(world, found.id)
    expect((await readWithHyparquet(file))[0]).toMatchObject({ id, name: hostile })
    const roots = await world.run({ filter: 'and(eq(is_root, true), neq(error, null))' })
    const { rows } = await sql<{ n: number }>`select count(*)::int as n from runs
      where session_id = ${world.projectId} and parent_run_id is null and error is not null`.execute(scene.database.db)
    expect(roots.progress.rows_exported).toBe(rows[0]?.n)
    const none = await world.run({ filter: 'eq(name, "nobody")' })
    expect(none).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 0, files_exported: 0 } })
  })

  it('lies in the Hive layout, one day a run, and windows hold their start and not their end', async () => {
    const world = await scene.makeWorld()
    const place = { workspace_id: world.workspace.id, session_id: world.projectId }
    const times = [
      '2026-08-18T23:59:59.999999Z',
      '2026-08-19T00:00:00Z',
      '2026-08-19T23:59:59.999999Z',
      '2026-08-20T00:00:00Z',
      '2026-08-20T09:59:59.999999Z',
      '2026-08-20T10:00:00Z',
    ]
    for (const start_time of times) await addRun(scene.database.db, { ...place, start_time })
    const range = { start_time: '2026-08-19T00:00:00Z', end_time: '2026-08-20T10:00:00Z' }
    const ended = await world.run({ ...range, format_version: 'v2_beta' })
    expect(ended.progress).toMatchObject({ rows_exported: 4, runs_total: 2 })
    const files = await scene.filesOf(world, ended.id)
    const days = await askDuckDb(
      files,
      `select resource, year, month, day, count(*) as n from read_parquet(FILES, hive_partitioning = true) group by all order by day`,
    )
    expect(
      days.map((row) => [row['resource'], Number(row['year']), Number(row['month']), Number(row['day']), Number(row['n'])]),
    ).toEqual([
      ['runs', 2026, 8, 19, 2],
      ['runs', 2026, 8, 20, 2],
    ])
    const old = await world.run({ ...range, format_version: 'v1' })
    const keys = (await scene.bucket.keys()).filter((key) => key.includes(old.id))
    const folder = `root/${world.workspace.id}/export_id=${old.id}/tenant_id=${world.workspace.id}/session_id=${world.projectId}/runs/year=2026/month=8`
    expect(keys.map((key) => key.slice(0, key.lastIndexOf('/')))).toEqual([`${folder}/day=19`, `${folder}/day=20`])
    const runs = await world.readRuns(old.id)
    expect(runs.map((run) => run.metadata.result?.export_path)).toEqual([`traces/${folder}/day=19`, `traces/${folder}/day=20`])
    expect(runs.map((run) => [run.metadata.start_time, run.metadata.end_time])).toEqual([
      ['2026-08-19T00:00:00.000000Z', '2026-08-20T00:00:00.000000Z'],
      ['2026-08-20T00:00:00.000000Z', '2026-08-20T10:00:00.000000Z'],
    ])
  })

  it('has the bucket in its path where the destination asks for it', async () => {
    const world = await scene.makeWorld({ runs: 3 })
    const { id } = await world.createDestination({}, { include_bucket_in_prefix: true, prefix: '/a//b/' })
    const ended = await world.run({ bulk_export_destination_id: id })
    expect((await scene.bucket.keys()).find((key) => key.includes(ended.id))).toMatch(/^traces\/a\/b\/export_id=/)
  })

  it('has files and row groups of a bounded size, also with very large rows among small ones', async () => {
    const settings = {
      fileTextBytes: 4 * 1024 * 1024,
      groupTextBytes: 512 * 1024,
      fileRows: 10_000,
      multipartAboveBytes: 1024 * 1024,
      uploadPartBytes: 5 * 1024 * 1024,
    }
    const world = await scene.makeWorld({ runs: 4000, textBytes: 3000, settings })
    const place = { workspace_id: world.workspace.id, session_id: world.projectId }
    const large = await addRun(scene.database.db, {
      ...place,
      start_time: `${DAY}T05:00:00Z`,
      inputs: JSON.stringify({ text: 'x\u0001'.repeat(5_000_000) }),
    })
    const ended = await world.run({ format_version: 'v2_beta', compression: 'none' })
    expect(ended).toMatchObject({ status: 'COMPLETED', progress: { rows_exported: 4001 } })
    const files = await scene.filesOf(world, ended.id)
    expect(files.length).toBeGreaterThan(4)
    for (const file of files) {
      const { groups } = await describeFile(file)
      for (const rows of groups) expect(rows).toBeLessThanOrEqual(2048)
      const [found] = await askDuckDb([file], `select count(*)::INT as n from read_parquet(FILES) where id = '${large}'`)
      if (Number(found?.['n']) === 0) expect((await stat(file)).size).toBeLessThan(6 * 1024 * 1024)
    }
    const [sums] = await askDuckDb(
      files,
      'select count(distinct id)::INT as ids, max(length(inputs::VARCHAR))::INT as longest from read_parquet(FILES)',
    )
    expect(sums?.['ids']).toBe(4001)
    expect(Number(sums?.['longest'])).toBeGreaterThan(10_000_000)
  })
})

/** DuckDB was asked for microseconds. */
function epochs(row: Row): Row {
  return Object.fromEntries(
    ['start_time', 'end_time', 'first_token_time'].map((name) => [name, row[name] === null ? null : BigInt(String(row[name]))]),
  )
}

/** One of the readers gives JavaScript dates, which have milliseconds. */
function toMilliseconds(row: Row): Row {
  const cut = (name: string) => [name, typeof row[name] === 'string' ? String(BigInt(row[name]) / 1000n) : null] as const
  return { ...row, ...Object.fromEntries(['start_time', 'end_time', 'first_token_time'].map(cut)) }
}

/** The other reader parses what is declared as JSON. */
function withParsedJson(row: Row, format: string): Row {
  if (format === 'v1') return row
  const fields = ['inputs', 'outputs', 'extra', 'events', 'feedback_stats']
  return {
    ...row,
    ...Object.fromEntries(
      fields.map((name) => [name, row[name] === null ? null : normalise({ x: JSON.parse(String(row[name])) as unknown })['x']]),
    ),
  }
}
