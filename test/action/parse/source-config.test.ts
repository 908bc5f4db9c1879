import { describe, expect, it } from 'vitest'
import { parseSourceConfig } from '../../../src/action/parse/source-config.ts'

describe('parseSourceConfig', () => {
  it('reads YAML and JSON alike', () => {
    const value = { resource_spec: { cpu: 2, memory_mb: 512 }, install_command: 'npm ci' }
    expect(parseSourceConfig('resource_spec:\n  cpu: 2\n  memory_mb: 512\ninstall_command: npm ci\n')).toEqual({ value })
    expect(parseSourceConfig(JSON.stringify(value))).toEqual({ value })
  })

  it.each([
    ['repo_url: https://github.com/acme/agents', 'repo_url'],
    ['nonsense: 1', 'nonsense'],
    ['listener_id: my-private-text', 'listener_id'],
    ['resource_spec: { cpu: 0 }', 'resource_spec.cpu'],
    ['- a', 'not an object'],
    ['text', 'not an object'],
    ['a: [', 'YAML'],
    ['a: 1\na: 2', 'YAML'],
    ['a: &x [1]\nb: *x', 'YAML'],
  ])('refuses %j and says where, not what', (text, says) => {
    const parsed = parseSourceConfig(text)
    expect(parsed).toHaveProperty('problem', expect.stringContaining(says))
    expect(JSON.stringify(parsed)).not.toContain('private')
  })
})
