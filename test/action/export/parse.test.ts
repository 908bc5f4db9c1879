import { describe, expect, it } from 'vitest'
import {
  parseApiUrl,
  parseBucket,
  parseBucketRegion,
  parseCredential,
  parseEndpoint,
  parseExportFields,
  parseExportFilter,
  parseInterval,
  parsePrefix,
} from '../../../src/action/export/parse.ts'
import { FILTER_MAX } from '../../../src/contract/bulk-export.ts'
import { EXPORTABLE_FIELDS } from '../../../src/contract/exportable-fields.ts'

const value = <T>(given: T) => ({ value: given })
const problem = (clause: string, fix?: string) => ({ problem: clause, ...(fix === undefined ? {} : { fix }) })

describe('the address of the main API', () => {
  it('is warned about by its own name', () =>
    expect(parseApiUrl('http://10.0.0.1/api')).toEqual(
      value({ url: 'http://10.0.0.1/api', warning: 'api-url is plain http: the API key travels unencrypted to 10.0.0.1' }),
    ))
})

describe('a bucket', () => {
  it.each([
    ['lake', value('lake')],
    ['my.lake_1-x', value('my.lake_1-x')],
    ['s3://lake/a/b', problem('is an address', 'write lake, and put what follows it into export-prefix')],
    ['S3://lake', problem('is an address', 'write lake, and put what follows it into export-prefix')],
    ['a/s3://lake', problem('is not the name of a bucket')],
    ['s3:///lake', problem('is not the name of a bucket')],
    ['la', problem('is not the name of a bucket')],
  ])('%s', (text, parsed) => expect(parseBucket(text)).toEqual(parsed))
})

describe('a prefix', () => {
  it.each([
    ['a/b', value('a/b')],
    ['//a///b/', value('a/b')],
    ['a\nb', problem('it should not have control characters')],
  ])('%j', (text, parsed) => expect(parsePrefix(text)).toEqual(parsed))
})

describe('the region of a bucket', () => {
  it.each([
    ['eu-central-1', value('eu-central-1')],
    ['x'.repeat(64), value('x'.repeat(64))],
    ['x'.repeat(65), problem('is not the name of a region')],
    ['eu central', problem('is not the name of a region')],
    ['eu_', problem('is not the name of a region')],
    ['_eu', problem('is not the name of a region')],
  ])('%s', (text, parsed) => expect(parseBucketRegion(text)).toEqual(parsed))
})

describe('an endpoint', () => {
  const credentials = problem('carries credentials', 'put them into export-access-key-id and export-secret-access-key')
  const tail = problem('has a query or a fragment', 'end it after the path')
  it.each([
    ['https://store.example.com', value('https://store.example.com')],
    ['http://store.example.com:9000/', value('http://store.example.com:9000')],
    ['https://store.example.com//a//b//', value('https://store.example.com//a//b')],
    ['store.example.com', problem('is not an address', 'write https://store.example.com')],
    ['ftp://store.example.com', problem('is neither https nor http')],
    ['https://me@store.example.com', credentials],
    ['https://:word@store.example.com', credentials],
    ['https://store.example.com?a=b', tail],
    ['https://store.example.com#a', tail],
  ])('%s', (text, parsed) => expect(parseEndpoint(text)).toEqual(parsed))
})

describe('a credential', () => {
  it.each([
    ['access_key_id', 'AKIA/1', value('AKIA/1')],
    ['secret_access_key', 'two words', problem('has characters that it cannot have, or is too long')],
    ['access_key_id', 'x'.repeat(513), problem('has characters that it cannot have, or is too long')],
    ['session_token', 'x'.repeat(513), value('x'.repeat(513))],
  ] as const)('%s of %s', (name, text, parsed) => expect(parseCredential(name)(text)).toEqual(parsed))
})

describe('an interval', () => {
  const none = (fix?: string) => problem('is not a number of hours that can be used', fix)
  it.each([
    ['1', value(1)],
    ['168', value(168)],
    ['0024', value(24)],
    ['0', none()],
    ['169', none()],
    ['00024', none()],
    ['x1', none()],
    ['1x', none()],
    ['1.5', none()],
    ['24h', none('write 24')],
    ['1h', none('write 1')],
    ['24hours', none()],
    ['every 24h', none()],
    ['allh', none()],
  ])('%s', (text, parsed) => expect(parseInterval(text)).toEqual(parsed))
})

describe('a filter', () => {
  const longest = `eq(name, "${'x'.repeat(FILTER_MAX - 12)}")`

  it('is passed on as it is written', () => {
    expect(parseExportFilter(' eq( is_root,true )')).toEqual(value(' eq( is_root,true )'))
    expect(longest).toHaveLength(FILTER_MAX)
    expect(parseExportFilter(longest)).toEqual(value(longest))
  })

  it('is not longer than the service takes', () =>
    expect(parseExportFilter(`${longest} `)).toEqual(problem('is longer than 100000 characters')))

  it('shows where it cannot be read', () => {
    expect(parseExportFilter('eq(name "a")')).toEqual(
      problem(expect.stringMatching(/^cannot be used: .+, in eq\(name ⟨here⟩"a"\)$/)),
    )
  })

  it('shows no more than the surroundings of the place', () => {
    const text = `and(eq(name, "${'a'.repeat(40)}"), eq(name "${'b'.repeat(40)}"))`
    const before = `${'a'.repeat(16)}"), eq(name `
    expect(before).toHaveLength(28)
    expect(parseExportFilter(text)).toEqual(problem(expect.stringContaining(`, in aa${before}⟨here⟩"${'b'.repeat(29)}`)))
    expect(JSON.stringify(parseExportFilter(text))).not.toMatch(/a{19}|b{30}/)
  })

  it('shows characters of control as they are written in JSON', () =>
    expect(parseExportFilter('eq(name\n"a")')).toEqual(problem(expect.stringMatching(/, in eq\(name\\n⟨here⟩"a"\)$/))))
})

describe('fields', () => {
  it.each([
    ['id', value(['id'])],
    ['id, name\nstatus', value(['id', 'name', 'status'])],
    [',id,,name ,\n', value(['id', 'name'])],
    [EXPORTABLE_FIELDS.join(','), value([...EXPORTABLE_FIELDS])],
    [' ,\n', problem('names no field')],
    ['id, colour', problem('has unknown fields (colour)')],
    ['a b c d e f', problem('has unknown fields (a, b, c, d, e)')],
    ['x'.repeat(50), problem(`has unknown fields (${'x'.repeat(39)}…)`)],
    ['id,name,id', problem('names id twice')],
  ])('%j', (text, parsed) => expect(parseExportFields(text)).toEqual(parsed))
})
