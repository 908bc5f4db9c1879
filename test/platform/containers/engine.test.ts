import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createImageHosting } from '../../../src/platform/control-plane/runtimes/choose-images.ts'
import { EngineAddressError, engineOf, ping } from '../../../src/platform/control-plane/runtimes/docker/engine.ts'
import { settlePlacement } from '../../../src/platform/control-plane/runtimes/docker/placement.ts'
import { registryCredentials } from '../../../src/platform/control-plane/runtimes/docker/registry-credentials.ts'
import { SILENT } from '../support/database.ts'
import { processesWith } from '../support/processes.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'engine-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Answers a ping as an engine does. */
const OK = (_: unknown, response: { end(text: string): void }) => response.end('OK')

async function listening(server: ReturnType<typeof createHttpServer> | ReturnType<typeof createTlsServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

describe('the address of an engine', () => {
  test.each([
    [{}, 'unix:///var/run/docker.sock', null],
    [{ DOCKER_HOST: '' }, 'unix:///var/run/docker.sock', null],
    [{ DOCKER_HOST: 'unix:///run/podman/podman.sock' }, 'unix:///run/podman/podman.sock', null],
    [{ DOCKER_HOST: 'tcp://127.0.0.1:2375' }, 'tcp://127.0.0.1:2375', null],
    [{ DOCKER_HOST: 'tcp://engine.example.com:2375' }, 'tcp://engine.example.com:2375', 'engine.example.com'],
    [{ DOCKER_HOST: 'tcp://engine.example.com:2376' }, 'https://engine.example.com:2376', 'engine.example.com'],
    [{ DOCKER_HOST: 'tcp://engine.example.com', DOCKER_TLS_VERIFY: '1' }, 'https://engine.example.com', 'engine.example.com'],
  ])('of %j is %s', (env, name, remoteHost) => {
    expect(engineOf(env)).toMatchObject({ name, remoteHost })
  })

  test.each([
    [{ DOCKER_HOST: 'ssh://engine.example.com' }, /DOCKER_HOST is 'ssh:\/\/engine\.example\.com': give unix:/],
    [{ DOCKER_HOST: 'nonsense' }, /DOCKER_HOST is 'nonsense'/],
    [
      { DOCKER_HOST: 'tcp://engine:2376', DOCKER_CERT_PATH: '/nowhere' },
      /DOCKER_CERT_PATH is '\/nowhere', and its ca\.pem cannot be read/,
    ],
  ])('of %j is none, and says so when an image is deployed', async (env, sentence) => {
    expect(() => engineOf(env)).toThrow(EngineAddressError)
    const { runtime } = createImageHosting({ env, installationId: 'i', platformUrl: 'http://127.0.0.1:1', log: SILENT })
    expect(await runtime.unavailable()).toMatch(sentence)
  })

  test('may be told not to be used; what is no runtime is refused at the start', async () => {
    const hosting = (kind: string) =>
      createImageHosting({
        env: { PLATFORM_CONTAINER_RUNTIME: kind },
        installationId: 'i',
        platformUrl: 'http://127.0.0.1:1',
        log: SILENT,
      })
    expect(await hosting('none').runtime.unavailable()).toContain('no container host')
    expect(() => hosting('lxc')).toThrow("PLATFORM_CONTAINER_RUNTIME is 'lxc'")
  })

  test.each([
    [{}, { network: null, publish: '127.0.0.1', host: '127.0.0.1' }],
    [{ PLATFORM_CONTAINER_PUBLISH: '10.1.2.3' }, { network: null, publish: '10.1.2.3', host: '10.1.2.3' }],
    [{ PLATFORM_CONTAINER_NETWORK: 'agents' }, { network: 'agents', publish: '127.0.0.1', host: '127.0.0.1' }],
    [{ DOCKER_HOST: 'tcp://192.0.2.7:2375' }, { network: null, publish: '192.0.2.7', host: '192.0.2.7' }],
    [
      { DOCKER_HOST: 'tcp://192.0.2.7:2375', PLATFORM_CONTAINER_PUBLISH: '0.0.0.0' },
      { network: null, publish: '0.0.0.0', host: '192.0.2.7' },
    ],
  ])('and %j settle where agents are reached', async (env, placement) => {
    expect(await settlePlacement(engineOf(env), env)).toEqual(placement)
  })

  test('publishes at no name', async () => {
    await expect(settlePlacement(engineOf({}), { PLATFORM_CONTAINER_PUBLISH: 'everywhere' })).rejects.toThrow(
      'give an IP address',
    )
  })
})

describe('an engine over TCP', () => {
  test('is asked in clear without TLS', async () => {
    const server = createHttpServer(OK)
    const port = await listening(server)
    expect(await ping(engineOf({ DOCKER_HOST: `tcp://127.0.0.1:${port}` }))).toBeNull()
    server.close()
  })

  test('is asked with the certificates of DOCKER_CERT_PATH, and trusted by no other', async () => {
    const own = certificates('own')
    const other = certificates('other')
    const read = (place: string, name: string) => readFileSync(path.join(place, name))
    const server = createTlsServer(
      {
        key: read(own, 'server-key.pem'),
        cert: read(own, 'server-cert.pem'),
        ca: read(own, 'ca.pem'),
        requestCert: true,
        rejectUnauthorized: true,
      },
      OK,
    )
    const DOCKER_HOST = `tcp://127.0.0.1:${await listening(server)}`
    expect(await ping(engineOf({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: own }))).toBeNull()
    expect(await ping(engineOf({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: other }))).not.toBeNull()
    expect(await ping(engineOf({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1' }))).not.toBeNull()
    expect(await ping(engineOf({ DOCKER_HOST }))).not.toBeNull()
    server.close()
  })
})

/** What `DOCKER_CERT_PATH` holds, and the engine's own half of it. */
function certificates(name: string): string {
  const place = path.join(folder, name)
  mkdirSync(place)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: place, stdio: 'pipe' })
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-subj',
    `/CN=${name}-ca`,
    '-keyout',
    'ca-key.pem',
    '-out',
    'ca.pem',
  )
  writeFileSync(path.join(place, 'names'), 'subjectAltName=IP:127.0.0.1\n')
  for (const [file, prefix] of [
    ['server', 'server-'],
    ['client', ''],
  ] as const) {
    openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', `/CN=${file}`, '-keyout', `${prefix}key.pem`, '-out', `${file}.csr`)
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial', '-days', '2', '-extfile', 'names']
    openssl('x509', '-req', '-in', `${file}.csr`, ...signing, '-out', `${prefix}cert.pem`)
  }
  return place
}

describe('the login for a registry', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64')

  function configured(config: unknown, helper?: string): Record<string, string> {
    const place = mkdtempSync(path.join(folder, 'config-'))
    writeFileSync(path.join(place, 'config.json'), typeof config === 'string' ? config : JSON.stringify(config))
    if (helper !== undefined) {
      const program = path.join(place, 'docker-credential-test')
      writeFileSync(program, helper)
      chmodSync(program, 0o755)
    }
    return { DOCKER_CONFIG: place, PATH: `${place}:${process.env['PATH']}` }
  }

  test.each([
    ['registry.example.com:5000', 'registry.example.com:5000', { username: 'robot', password: 'a:b' }],
    ['registry.example.com', 'https://registry.example.com', { username: 'robot', password: 'a:b' }],
    ['docker.io', 'https://index.docker.io/v1/', { username: 'robot', password: 'a:b' }],
  ])('%s is found under %s', async (registry, key, login) => {
    const env = configured({ auths: { [key]: { auth: base64('robot:a:b') }, 'other.example.com': { auth: base64('no:no') } } })
    expect(await registryCredentials(registry, env)).toEqual({ ...login, serveraddress: key })
  })

  test('may be a token, and there may be none', async () => {
    const env = configured({ auths: { 'a.example.com': { identitytoken: 'token' }, 'b.example.com': {} } })
    expect(await registryCredentials('a.example.com', env)).toEqual({ identitytoken: 'token', serveraddress: 'a.example.com' })
    expect(await registryCredentials('b.example.com', env)).toBeUndefined()
    expect(await registryCredentials('c.example.com', env)).toBeUndefined()
    expect(await registryCredentials('a.example.com', { DOCKER_CONFIG: path.join(folder, 'nowhere') })).toBeUndefined()
  })

  test('is asked of a helper program, for all registries or for one', async () => {
    const helper =
      '#!/bin/sh\nread -r registry\n[ "$registry" = a.example.com ] || exit 1\necho \'{"Username":"robot","Secret":"from the helper"}\'\n'
    for (const config of [{ credsStore: 'test' }, { credHelpers: { 'a.example.com': 'test' } }]) {
      const env = configured(config, helper)
      const found = { username: 'robot', password: 'from the helper', serveraddress: 'a.example.com' }
      expect(await registryCredentials('a.example.com', env)).toEqual(found)
      expect(await registryCredentials('b.example.com', env)).toBeUndefined()
    }
  })

  test('is not waited for when its helper hangs, whatever that has started; nothing of it goes on', async () => {
    const long = `sleep 4711.${process.pid}`
    const hanging = configured({ credsStore: 'test' }, `#!/bin/sh\n${long} &\nwait\n`)
    const began = performance.now()
    expect(await registryCredentials('a.example.com', hanging, { limitMs: 300 })).toBeUndefined()
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(processesWith(long)).toEqual([])
  })

  test('is asked for without the keys of the platform', async () => {
    const helper = '#!/bin/sh\nprintf \'{"Username":"u","Secret":"%s"}\' "$PLATFORM_SECRET_KEY$AWS_PROFILE"\n'
    const env = { ...configured({ credsStore: 'test' }, helper), PLATFORM_SECRET_KEY: 'master', AWS_PROFILE: 'mine' }
    expect(await registryCredentials('a.example.com', env)).toMatchObject({ password: 'mine' })
  })

  test('that cannot be read is told without a word of it', async () => {
    await expect(registryCredentials('a.example.com', configured('{"auths": secret-text'))).rejects.toThrow(
      /config\.json is not JSON$/,
    )
    const silent = configured({ credsStore: 'test' }, '#!/bin/sh\necho secret-text\n')
    await expect(registryCredentials('a.example.com', silent)).rejects.toThrow(
      'docker-credential-test did not answer as credential helpers do',
    )
    await expect(registryCredentials('a.example.com', configured({ credsStore: '../../bin/sh' }))).rejects.toThrow(
      'a name that no program has',
    )
    await expect(registryCredentials('a.example.com', configured({ credsStore: 'not-there' }))).rejects.toThrow(
      'could not be run',
    )
  })
})
