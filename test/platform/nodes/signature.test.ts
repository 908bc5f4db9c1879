import { describe, expect, test } from 'vitest'
import { addressForOthers, readAddress } from '../../../src/platform/nodes/node-address.ts'
import { createNodeSignature } from '../../../src/platform/nodes/signature.ts'

const [ONE, TWO] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

describe('signatures between nodes', () => {
  test('are good for what was signed, for five minutes either way, from whoever shares a key', () => {
    let now = 1_000_000_000
    const clock = () => now
    const signature = createNodeSignature([ONE], clock)
    const header = signature.sign('GET /_nodes/agents/a/x')
    expect(createNodeSignature([TWO, ONE], clock).verify(header, 'GET /_nodes/agents/a/x')).toBe(true)
    expect(signature.verify(header, 'GET /_nodes/agents/b/x')).toBe(false)
    expect(createNodeSignature([TWO], clock).verify(header, 'GET /_nodes/agents/a/x')).toBe(false)
    now += 5 * 60_000
    expect(signature.verify(header, 'GET /_nodes/agents/a/x')).toBe(true)
    now += 1
    expect(signature.verify(header, 'GET /_nodes/agents/a/x')).toBe(false)
    now -= 10 * 60_000 + 2
    expect(signature.verify(header, 'GET /_nodes/agents/a/x')).toBe(false)
  })

  test('that are malformed, altered or doubled are none', () => {
    const signature = createNodeSignature([ONE])
    const header = signature.sign('x')
    for (const wrong of [
      undefined,
      '',
      'x',
      '1.',
      `${header}x`,
      header.slice(0, -1),
      [header, header],
      `${header}, ${header}`,
      `1${header}`,
    ]) {
      expect(signature.verify(wrong, 'x')).toBe(false)
    }
  })
})

describe('addresses', () => {
  test('have a scheme and a host, and nothing else', () => {
    const read = (text: string) => readAddress({ PLATFORM_PUBLIC_URL: text }, 'PLATFORM_PUBLIC_URL')
    expect(read('')).toBeUndefined()
    expect(read('https://Platform.example.com/')).toBe('https://platform.example.com')
    expect(read('http://10.0.0.7:8787')).toBe('http://10.0.0.7:8787')
    for (const wrong of ['platform.example.com', 'ftp://x', 'https://x/path', 'https://x/?a', 'https://x/#a', 'https://']) {
      expect(() => read(wrong)).toThrow('PLATFORM_PUBLIC_URL')
    }
    expect(() => read('https://user:hunter2@x')).toThrow(/^(?!.*hunter2)/)
  })

  test('of a node that listens everywhere has the name of its machine', () => {
    expect(addressForOthers('http://127.0.0.1:8787', 'node-1')).toBe('http://127.0.0.1:8787')
    expect(addressForOthers('http://0.0.0.0:8787', 'node-1')).toBe('http://node-1:8787')
    expect(addressForOthers('http://[::]:8787', 'node-1')).toBe('http://node-1:8787')
  })
})
