import { describe, expect, it } from 'vitest'
import { environmentNameOf, helpText, OptionError, OPTIONS, type OptionName, parseOptions } from '../../src/platform/options.ts'

const faults = (args: string[], environment: Record<string, string> = {}): string => {
  try {
    parseOptions(args, environment)
  } catch (error) {
    if (error instanceof OptionError) return error.message
    throw error
  }
  return ''
}

describe('the options', () => {
  it('have defaults', () => {
    expect(parseOptions([], {})).toMatchObject({
      host: '127.0.0.1',
      port: 8787,
      'data-dir': '.platform',
      role: 'all',
      offering: 'any',
      plan: 'enterprise',
      dialect: 'spec',
      'time-scale': 1,
      json: false,
    })
  })

  it('come from the command line before the environment', () => {
    const environment = { PLATFORM_PORT: '1', PLATFORM_DATA_DIR: '/a', PLATFORM_JSON: 'true', PLATFORM_ROLE: '' }
    expect(parseOptions(['--port', '2'], environment)).toMatchObject({ port: 2, 'data-dir': '/a', json: true, role: 'all' })
  })

  it.each<[string, OptionName]>([
    ['PLATFORM_DATA_DIR', 'data-dir'],
    ['PLATFORM_API_KEY', 'api-key'],
    ['PLATFORM_TIME_SCALE', 'time-scale'],
  ])('have an environment variable: %s', (variable, option) => {
    expect(environmentNameOf(option)).toBe(variable)
  })

  it.each([
    [['--port', 'x'], '--port: '],
    [['--port', '65536'], '--port: '],
    [['--port', '-1'], 'port'],
    [['--database-url', 'mysql://x'], '--database-url: '],
    [['--role', 'both'], '--role: '],
    [['--api-key', 'short'], '--api-key: 16 to 512 printable characters without spaces'],
    [['--workspace-id', '1'], '--workspace-id: '],
    [['--offering', 'hybrid'], '--offering: '],
    [['--plan', 'free'], '--plan: '],
    [['--dialect', 'x'], '--dialect: '],
    [['--time-scale', '0'], '--time-scale: '],
    [['--colour', 'red'], 'The options are: --host, --port'],
    [['stray'], 'The options are: --host, --port'],
    [['--role', 'api'], '--role: the roles api and queue share one database server: set --database-url'],
  ])('refuse %j by name', (args, text) => {
    expect(faults(args)).toContain(text)
  })

  it('name every fault at once, and the variable that one came from', () => {
    const text = faults(['--port', 'x', '--plan', 'free'], { PLATFORM_DIALECT: 'klingon' })
    expect(text.split('\n').map((line) => line.split(':')[0])).toEqual(['--port', '--plan', 'PLATFORM_DIALECT'])
  })

  it('never show a key that they refuse', () => {
    expect(faults(['--api-key', 'pass word pass word'])).not.toContain('pass word')
  })

  it('are all in the help', () => {
    for (const name of Object.keys(OPTIONS)) expect(helpText()).toContain(`--${name}`)
  })
})
