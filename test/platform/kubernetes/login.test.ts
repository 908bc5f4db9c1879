import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openCluster } from '../../../src/platform/control-plane/runtimes/kubernetes/cluster.ts'
import { createKubernetesRuntime } from '../../../src/platform/control-plane/runtimes/kubernetes/kubernetes.ts'
import { processesWith } from '../support/processes.ts'
import { INSTALLATION } from './support/scene.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'login-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A kubeconfig whose credentials come from a program. */
function programmed(script: string): { KUBECONFIG: string } {
  const place = mkdtempSync(path.join(folder, 'config-'))
  const command = path.join(place, 'login')
  writeFileSync(command, `#!/bin/sh\n${script}\n`)
  chmodSync(command, 0o755)
  const KUBECONFIG = path.join(place, 'config')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
    users: [{ name: 'u', user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command } } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  }
  writeFileSync(KUBECONFIG, JSON.stringify(config))
  return { KUBECONFIG }
}
const runtimeOf = (env: { KUBECONFIG: string }) => createKubernetesRuntime({ env, installationId: INSTALLATION })

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
        await expect(ask()).rejects.toMatchObject({ name: 'TimeoutError', message: expect.stringContaining('does not end') })
        expect(performance.now() - began).toBeLessThan(5000)
      }
      expect(processesWith(long)).toHaveLength(1)
    } finally {
      for (const pid of processesWith(long)) process.kill(pid, 'SIGKILL')
    }
    // It has ended, if badly: the next request asks it again.
    await expect.poll(() => asks[0]?.().catch((error: Error) => error.name), { timeout: 10_000 }).toBe('Error')
  })

  it('and says something else is told without a word of it', async () => {
    const reason = await runtimeOf(programmed('echo secret-token')).unavailable()
    expect(reason).toContain('the program that gives the credentials does not answer as it should')
    expect(reason).not.toContain('secret-token')
  })
})

it('a kubeconfig that is not YAML is told without a word of it', async () => {
  const KUBECONFIG = path.join(folder, 'broken')
  writeFileSync(KUBECONFIG, 'apiVersion: v1\nusers:\n- name: a\n  user:\n    token: secret-token: x\n')
  expect(await runtimeOf({ KUBECONFIG }).unavailable()).toBe('the kubeconfig cannot be used: it is not YAML (line 5)')
})
