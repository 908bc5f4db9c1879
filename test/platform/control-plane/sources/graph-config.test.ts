import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readGraphConfig } from '../../../../src/platform/control-plane/sources/graph-config.ts'
import { BuildFailure } from '../../../../src/platform/control-plane/sources/source.ts'
import { memoryLog } from '../../support/memory-log.ts'

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'graph-config-')))
let serial = 0
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A checkout with these files; objects are written as JSON. */
function checkoutOf(files: Record<string, unknown>): string {
  const root = path.join(folder, String((serial += 1)))
  mkdirSync(root)
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return root
}

const graphs = { agent: './agent.ts:graph' }

async function failureOf(files: Record<string, unknown>, configPath = 'langgraph.json'): Promise<string> {
  const failure = await readGraphConfig(checkoutOf(files), configPath, memoryLog()).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(BuildFailure)
  return (failure as Error).message
}

describe('what is read', () => {
  test('graphs in both forms, dependencies, an environment, keys that nobody knows', async () => {
    const root = checkoutOf({
      'langgraph.json': {
        graphs: { ...graphs, other: { path: './other.mjs:make', description: 'the other one' } },
        dependencies: ['.'],
        env: { A: 'x', B: 2, C: true },
        node_version: '22',
        unheard_of: { of: 1 },
      },
    })
    const log = memoryLog()
    expect(await readGraphConfig(root, 'langgraph.json', log)).toEqual({
      directory: root,
      graphs: { agent: './agent.ts:graph', other: './other.mjs:make' },
      dependencies: ['.'],
      env: { A: 'x', B: '2', C: 'true' },
      language: 'js',
      server: {},
    })
    expect(log.text()).toContain(`Node ${process.versions.node} (node_version: 22)`)
  })

  test('the folder of the file is the base, in a monorepo', async () => {
    const root = checkoutOf({ 'apps/agent/langgraph.json': { graphs } })
    expect((await readGraphConfig(root, 'apps/agent/langgraph.json', memoryLog())).directory).toBe(path.join(root, 'apps/agent'))
  })

  test('a dotenv file', async () => {
    const root = checkoutOf({
      'langgraph.json': { graphs, env: './conf/.env' },
      'conf/.env': 'A=1\n# comment\nexport B="two words" # why\nC=\'$A\'\nnot-a-name=1\nD="line\nbreak"\n',
    })
    const { env } = await readGraphConfig(root, 'langgraph.json', memoryLog())
    expect(env).toEqual({ A: '1', B: 'two words', C: '$A', D: 'line\nbreak' })
  })

  test('a dotenv file that is kept out of git is only mentioned', async () => {
    const log = memoryLog()
    const { env } = await readGraphConfig(checkoutOf({ 'langgraph.json': { graphs, env: '.env' } }), 'langgraph.json', log)
    expect(env).toEqual({})
    expect(log.lines).toContainEqual({ level: 'WARNING', message: expect.stringContaining("the file '.env' of $.env is not in the repository") })
  })

  test('what has no effect here is mentioned', async () => {
    const log = memoryLog()
    await readGraphConfig(checkoutOf({ 'langgraph.json': { graphs, dockerfile_lines: ['RUN x'] } }), 'langgraph.json', log)
    expect(log.text()).toContain("'dockerfile_lines' has no effect on this platform")
  })

  test('a Python graph is told by its file', async () => {
    const root = checkoutOf({ 'langgraph.json': { graphs: { agent: './src/agent.py:graph' }, python_version: '3.12' } })
    const config = await readGraphConfig(root, 'langgraph.json', memoryLog())
    expect(config).toMatchObject({ language: 'python', pythonVersion: '3.12' })
  })
})

describe('what is refused', () => {
  test.each<[string, unknown, string]>([
    ['not JSON', '{ "graphs": ', 'is not valid JSON'],
    ['an array', [], 'invalid input'],
    ['no graphs', {}, '$.graphs'],
    ['empty graphs', { graphs: {} }, '$.graphs should name one graph at least'],
    ['a graph that is a number', { graphs: { agent: 1 } }, '$.graphs.agent should be "path:export"'],
    ['a graph without a path', { graphs: { 'my agent': { description: 'x' } } }, '$.graphs["my agent"] should be "path:export"'],
    ['an absolute path', { graphs: { agent: '/etc/agent.ts:graph' } }, '$.graphs.agent should be "./path:export" with a relative path'],
    ['a strange file', { graphs: { agent: './agent.rb:graph' } }, '$.graphs.agent should name a file that ends in'],
    ['two colons', { graphs: { agent: './agent.ts:a:b' } }, 'with one colon'],
    ['a dependency that is a number', { graphs, dependencies: ['.', 2] }, '$.dependencies[1]'],
    [
      'two languages',
      { graphs: { ...graphs, other: './other.py:graph' } },
      'mixes Python graphs, other (./other.py:graph), with JavaScript ones, agent (./agent.ts:graph)',
    ],
    ['an environment of objects', { graphs, env: { A: {} } }, '$.env'],
    ['Node 18', { graphs, node_version: '18' }, "$.node_version is '18', and this platform has Node 24"],
    ['a Node that is to come', { graphs, node_version: 30 }, "$.node_version is '30'"],
    ['a Node that is none', { graphs, node_version: 'lts' }, "$.node_version is 'lts'"],
  ])('%s', async (_, content, sentence) => {
    expect((await failureOf({ 'langgraph.json': content })).toLowerCase()).toContain(sentence.toLowerCase())
  })

  test('a file that is not there, and paths that are none', async () => {
    expect(await failureOf({})).toContain('There is no langgraph.json in the repository')
    expect(await failureOf({ 'x.json': { graphs } }, '../1/x.json')).toContain('is not a path of a configuration file')
    expect(await failureOf({ 'x.json': { graphs } }, '/etc/passwd.json')).toContain('is not a path of a configuration file')
  })

  test('more than a configuration file can hold', async () => {
    expect(await failureOf({ 'langgraph.json': ' '.repeat(1024 * 1024 + 1) })).toContain('is no file of at most')
  })

  test('links that lead out of the repository', async () => {
    const outside = checkoutOf({ 'langgraph.json': { graphs, env: '.env' }, '.env': 'SECRET=1' })
    const root = checkoutOf({ 'inside.json': { graphs, env: 'linked.env' } })
    symlinkSync(path.join(outside, 'langgraph.json'), path.join(root, 'file.json'))
    symlinkSync(outside, path.join(root, 'folder'))
    symlinkSync(path.join(outside, '.env'), path.join(root, 'linked.env'))
    const read = (configPath: string) => readGraphConfig(root, configPath, memoryLog())
    await expect(read('file.json')).rejects.toThrow('leads out of the repository')
    await expect(read('folder/langgraph.json')).rejects.toThrow('leads out of the repository')
    await expect(read('inside.json')).rejects.toThrow('$.env leads out of the repository')
    await expect(readGraphConfig(checkoutOf({ 'a.json': { graphs, env: '../x/.env' } }), 'a.json', memoryLog())).rejects.toThrow(
      '$.env leads out of the repository',
    )
  })

  test('a link inside the repository is followed', async () => {
    const root = checkoutOf({ 'real.json': { graphs } })
    symlinkSync('real.json', path.join(root, 'langgraph.json'))
    expect((await readGraphConfig(root, 'langgraph.json', memoryLog())).graphs).toEqual(graphs)
  })
})
