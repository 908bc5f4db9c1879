import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { inspect } from 'node:util'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { openCluster } from '../../../src/platform/control-plane/runtimes/kubernetes/cluster.ts'
import { isAway, LoginFailure } from '../../../src/platform/control-plane/runtimes/kubernetes/cluster-error.ts'
import { createKubernetesRuntime } from '../../../src/platform/control-plane/runtimes/kubernetes/kubernetes.ts'
import { processesWith } from '../support/processes.ts'
import { imageStart } from './support/request.ts'
import { cluster, effectsOf, INSTALLATION } from './support/scene.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'login-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => vi.unstubAllEnvs())

/** What nobody with a key may read. */
const SECRET = 'abc-SECRET-123'
const CREDENTIAL = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'

interface ConfigOptions {
  readonly server?: string
  /** Of the program, as the kubeconfig has it. */
  readonly env?: readonly { name: string; value: string }[]
}

function configOf(user: object, { server = 'http://127.0.0.1:1' }: ConfigOptions = {}): { KUBECONFIG: string } {
  const KUBECONFIG = path.join(mkdtempSync(path.join(folder, 'config-')), 'config')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'agents' } }],
    'current-context': 'c',
  }
  writeFileSync(KUBECONFIG, JSON.stringify(config))
  return { KUBECONFIG }
}

/** A kubeconfig whose credentials come from a program. */
function programmed(script: string, { env, ...options }: ConfigOptions = {}): { KUBECONFIG: string } {
  const command = path.join(mkdtempSync(path.join(folder, 'program-')), 'login')
  writeFileSync(command, `#!/bin/sh\n${script}\n`)
  chmodSync(command, 0o755)
  return configOf({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command, env } }, options)
}
const runtimeOf = (env: { KUBECONFIG: string }) => createKubernetesRuntime({ env, installationId: INSTALLATION, pollMs: 20 })
const listPods = (env: { KUBECONFIG: string }) => openCluster(env).core.listNamespacedPod({ namespace: 'agents' })

describe('a program that gives the credentials of a cluster', () => {
  it('and hangs is waited for no longer than its limit, and not started again beside itself', async () => {
    const long = `sleep 61.${process.pid}`
    const cluster = openCluster(programmed(`[ -e "$0.hung" ] && exit 1; touch "$0.hung"; exec ${long}`), { loginLimitMs: 400 })
    const asks = [
      () => cluster.core.listNamespacedPod({ namespace: 'agents' }),
      () => cluster.stream('/api/v1/namespaces/agents/pods', {}, new AbortController().signal),
      () => cluster.apps.listNamespacedDeployment({ namespace: 'agents' }),
    ]
    try {
      for (const ask of asks) {
        const began = performance.now()
        const late = await ask().catch((error: Error) => error)
        expect(late).toEqual(new LoginFailure('the program that gives the credentials does not end'))
        expect(isAway(late)).toBe(true)
        expect(performance.now() - began).toBeLessThan(5000)
      }
      expect(processesWith(long)).toHaveLength(1)
    } finally {
      for (const pid of processesWith(long)) process.kill(pid, 'SIGKILL')
    }
    // It has ended, if badly: the next request asks it again.
    const says = () => asks[0]?.().catch((error: Error) => error.message)
    await expect.poll(says, { timeout: 10_000 }).toBe('the program that gives the credentials fails')
  })

  it.each([
    ['says something else', `echo ${SECRET}`, 'does not answer as it should'],
    ['answers without credentials', `echo '{"${SECRET}": 1}'`, 'does not answer as it should'],
    ['fails, and says why', `echo "refresh token ${SECRET} was refused by https://sso.internal" >&2; exit 1`, 'fails'],
    ['is killed', `echo ${SECRET} >&2; kill -9 $$`, 'fails'],
  ])('and %s is told without a word of it', async (_, script, fault) => {
    const env = programmed(script)
    const sentence = `the program that gives the credentials ${fault}`
    expect(await runtimeOf(env).unavailable()).toBe(`there is no login to the cluster at http://127.0.0.1:1: ${sentence}`)
    const failure = (await listPods(env).catch((error: unknown) => error)) as Error
    expect(failure).toEqual(new LoginFailure(sentence))
    expect(inspect(failure, { depth: null })).not.toContain(SECRET)
    expect(isAway(failure)).toBe(true)
  })

  it('and is not there is told without its name', async () => {
    const env = configOf({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: `/opt/${SECRET}/login` } })
    await expect(listPods(env)).rejects.toEqual(new LoginFailure('the program that gives the credentials cannot be run (ENOENT)'))
  })

  it('and gives a token that cannot be sent is told without it', async () => {
    const token = CREDENTIAL.replace('"t"', `"${SECRET}\\\\nmore"`)
    const failure = (await listPods(programmed(`echo '${token}'`)).catch((error: unknown) => error)) as Error
    expect(failure).toEqual(new LoginFailure('the credentials have characters that cannot be sent'))
  })

  it('and fails for a moment fails nobody’s revision', async () => {
    const double = await cluster()
    const { clusters } = JSON.parse(readFileSync(double.env['KUBECONFIG']!, 'utf8')) as {
      clusters: { cluster: { server: string } }[]
    }
    const broken = path.join(folder, 'broken-login')
    // Its credentials last for no time, so that it is asked each time; once it answers with none, and that is not kept either.
    const script = `if [ -e ${broken} ]; then echo ${SECRET} >&2; exit 1; fi
      if [ ! -e "$0.asked" ]; then touch "$0.asked"; echo '{}'; exit 0; fi
      echo '${CREDENTIAL.replace('"t"', '"t", "expirationTimestamp": "2020-01-01T00:00:00Z"')}'`
    const env = { ...double.env, ...programmed(script, { server: clusters[0]!.cluster.server }) }
    const runtime = runtimeOf(env)
    // The second of its own two questions has an answer.
    expect(await runtime.unavailable()).toBeNull()
    writeFileSync(broken, '')
    expect(await runtime.unavailable()).toBeNull()
    expect(await runtime.list()).toEqual([])
    setTimeout(() => rmSync(broken), 1500)
    const effects = effectsOf()
    const agent = await runtime.start(imageStart(), effects)
    const told = "The cluster's API does not answer; trying again: the program that gives the credentials fails"
    expect(effects.log.text()).toContain(told)
    expect(effects.log.text()).not.toContain(SECRET)
    await agent.stop({ graceMs: 1000 })
  })

  it('has none of the platform’s own variables, and all others', async () => {
    vi.stubEnv('PLATFORM_SECRET_KEY', SECRET)
    vi.stubEnv('PLATFORM_DATABASE_URL', SECRET)
    vi.stubEnv('PLATFORM_REGION', SECRET)
    vi.stubEnv('AWS_PROFILE', 'operators')
    const env = programmed(`env > "$0.env"; cp "$0.env" "$SEEN"; echo '${CREDENTIAL}'`, {
      env: [
        { name: 'SEEN', value: path.join(folder, 'seen.env') },
        { name: 'PLATFORM_REGION', value: 'set for it' },
      ],
    })
    await expect(listPods(env)).rejects.toThrow('fetch failed')
    const seen = readFileSync(path.join(folder, 'seen.env'), 'utf8').split('\n')
    expect(seen.filter((line) => line.startsWith('PLATFORM_'))).toEqual(['PLATFORM_REGION=set for it'])
    expect(seen).toContain('AWS_PROFILE=operators')
    expect(seen.join('\n')).not.toContain(SECRET)
  })
})

describe('another way to log in to a cluster', () => {
  it('a login service that does not answer is told without a word of it, and waited for', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const config = {
      'id-token': `${part({})}.${part({ exp: 1 })}.x`,
      'refresh-token': SECRET,
      'client-id': 'platform',
      'idp-issuer-url': 'https://127.0.0.1:1',
    }
    const failure = await listPods(configOf({ 'auth-provider': { name: 'oidc', config } })).catch((error: unknown) => error)
    expect(failure).toEqual(new LoginFailure('the service that gives the credentials does not answer as it should'))
    expect(isAway(failure)).toBe(true)
  })

  it('a program of an auth-provider, which would have all of our environment, is not run', async () => {
    const config = { 'cmd-path': '/bin/false', 'access-token': SECRET }
    const reason = await runtimeOf(configOf({ 'auth-provider': { name: 'gcp', config } })).unavailable()
    expect(reason).toMatch(/^the kubeconfig cannot be used: its user has an auth-provider with a program.*exec plugin$/)
  })

  it('a file that is not there is told by its name, and not waited for', async () => {
    const failure = await listPods(configOf({ 'client-certificate': '/nowhere/client.crt' })).catch((error: unknown) => error)
    expect(failure).toMatchObject({ message: expect.stringContaining('/nowhere/client.crt') })
    expect(isAway(failure)).toBe(false)
  })
})

it('a kubeconfig that is not YAML is told without a word of it', async () => {
  const KUBECONFIG = path.join(folder, 'broken')
  writeFileSync(KUBECONFIG, 'apiVersion: v1\nusers:\n- name: a\n  user:\n    token: secret-token: x\n')
  expect(await runtimeOf({ KUBECONFIG }).unavailable()).toBe('the kubeconfig cannot be used: it is not YAML (line 5)')
})
