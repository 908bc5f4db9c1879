import { expect, it } from 'vitest'
import { StartFailure } from '../../../src/platform/control-plane/runtimes/runtime.ts'
import type { ClusterDouble } from './support/cluster-double.ts'
import type { PodActs } from './support/pod-acts.ts'
import { imageStart } from './support/request.ts'
import { cluster, effectsOf, runtimeOn } from './support/scene.ts'

const IMAGE = 'registry.example.com/team/agent:1'

/** Starts an agent that fails; nothing may be left of it. */
async function failureOn(double: ClusterDouble, { timeoutMs = 20_000, start = imageStart() } = {}) {
  const effects = effectsOf({ timeoutMs })
  const error = await runtimeOn(double)
    .start(start, effects)
    .then(
      () => new Error('it came up'),
      (failure: Error) => failure,
    )
  expect(error).toBeInstanceOf(StartFailure)
  await expect.poll(() => double.left()).toEqual([])
  expect(effects.log.text()).not.toContain('sk-very-secret')
  return { message: error.message, output: (error as StartFailure).output, log: effects.log.text() }
}

function crashing(acts: PodActs, end: Parameters<PodActs['crash']>[0]): void {
  acts.pulling()
  acts.run()
  acts.print('loading the graph')
  acts.print('ModuleNotFoundError: No module named "agent"')
  acts.crash(end)
}

it('an image that is not there', async () => {
  const double = await cluster()
  double.behaviour = (acts) => {
    acts.pulling()
    acts.cannotPull(
      'ErrImagePull',
      `rpc error: code = NotFound desc = failed to pull and unpack image "${IMAGE}": ${IMAGE}: not found`,
    )
    acts.cannotPull('ImagePullBackOff', `Back-off pulling image "${IMAGE}"`)
  }
  const { message } = await failureOn(double)
  expect(message).toBe(
    `The cluster cannot pull ${IMAGE}: rpc error: code = NotFound desc = failed to pull and unpack image "${IMAGE}": ${IMAGE}: not found.`,
  )
})

it('a registry that refuses', async () => {
  const double = await cluster()
  double.behaviour = (acts) =>
    acts.cannotPull('ErrImagePull', 'failed to authorize: failed to fetch anonymous token: 401 Unauthorized')
  const { message } = await failureOn(double)
  expect(message).toContain('401 Unauthorized')
  expect(message).toContain('PLATFORM_KUBERNETES_PULL_SECRETS')
})

it('an image for another machine', async () => {
  const double = await cluster()
  double.behaviour = (acts) => acts.cannotPull('ErrImagePull', 'no match for platform in manifest: not found')
  expect((await failureOn(double)).message).toContain('no match for platform in manifest')
})

it('a registry that is away for good, and one that comes back', async () => {
  const double = await cluster()
  const trouble = 'dial tcp 10.0.0.9:443: connect: connection refused'
  double.behaviour = (acts) => acts.cannotPull('ErrImagePull', trouble)
  expect((await failureOn(double, { timeoutMs: 300 })).message).toBe(`The cluster cannot pull ${IMAGE}: ${trouble}.`)

  double.behaviour = (acts) => {
    acts.cannotPull('ErrImagePull', trouble)
    setTimeout(() => (acts.run(), acts.ready()), 400)
  }
  const effects = effectsOf()
  const agent = await runtimeOn(double).start(imageStart(), effects)
  expect(effects.log.lines).toContainEqual({ level: 'WARNING', message: `The cluster cannot pull ${IMAGE}: ${trouble}.` })
  await agent.stop({ graceMs: 1000 })
})

it('a container that ends at its start: its reason and the end of its log', async () => {
  const double = await cluster()
  double.behaviour = (acts) => crashing(acts, { exitCode: 3 })
  const { message, output, log } = await failureOn(double)
  expect(message).toBe('The agent exited with code 3 before it answered.')
  expect(output).toEqual(['loading the graph', 'ModuleNotFoundError: No module named "agent"'])
  expect(log).toContain('ModuleNotFoundError')
})

it('a container that the kubelet has started again meanwhile: the log of the one that ended', async () => {
  const double = await cluster()
  double.behaviour = (acts) => {
    acts.pulling()
    acts.run()
    acts.print('cannot reach the database')
    // Seen only when it is over: the platform was away for a moment.
    double.trouble.away = true
    acts.crash({ exitCode: 1, startedAgain: true })
    setTimeout(() => {
      acts.print('trying once more')
      double.trouble.away = false
    }, 120)
  }
  const { message, output } = await failureOn(double)
  expect(message).toBe('The agent exited with code 1 before it answered.')
  expect(output).toEqual(['cannot reach the database'])
})

it.each([
  [
    'out of memory',
    { exitCode: 137, reason: 'OOMKilled' },
    'The agent was killed by SIGKILL before it answered. It ran out of memory: see memory_limit_mb in resource_spec.',
  ],
  [
    'a program that is not there',
    { exitCode: 128, reason: 'StartError', message: 'exec: "nothing": executable file not found in $PATH: unknown' },
    `The agent's container could not be started: exec: "nothing": executable file not found in $PATH: unknown.`,
  ],
  [
    'a program of another machine',
    { exitCode: 255, message: 'exec /bin/agent: exec format error' },
    "The agent exited with code 255 before it answered. The image is made for another kind of machine than the cluster's.",
  ],
])('a container that ends: %s', async (_, end, sentence) => {
  const double = await cluster()
  double.behaviour = (acts) => crashing(acts, end)
  expect((await failureOn(double)).message).toBe(sentence)
})

it('no node has room', async () => {
  const double = await cluster()
  double.behaviour = (acts) => acts.unplaced('0/3 nodes are available: 3 Insufficient memory.')
  const { message, log } = await failureOn(double, { timeoutMs: 300 })
  expect(message).toBe('The cluster has no place for the agent: 0/3 nodes are available: 3 Insufficient memory.')
  expect(log.split('\n').filter((line) => line === message)).toHaveLength(2)
})

it('a quota, and a rule of the namespace', async () => {
  const double = await cluster()
  double.quota =
    'pods "agent-x" is forbidden: exceeded quota: team, requested: limits.memory=1Gi, used: limits.memory=8Gi, limited: limits.memory=8Gi'
  expect((await failureOn(double)).message).toBe(`The cluster does not make the agent's pod: ${double.quota}.`)
})

it('an image that runs as root where that is not allowed', async () => {
  const double = await cluster()
  double.behaviour = (acts) => acts.waits('CreateContainerConfigError', 'container has runAsNonRoot and image will run as root')
  expect((await failureOn(double)).message).toContain('PLATFORM_KUBERNETES_RUN_AS_USER')
})

it('a Secret that comes after the pod is no failure', async () => {
  const double = await cluster()
  double.behaviour = (acts) => {
    acts.waits('CreateContainerConfigError', 'secret "agent-support-agent" not found')
    setTimeout(() => (acts.run(), acts.ready()), 200)
  }
  const agent = await runtimeOn(double).start(imageStart(), effectsOf())
  expect((await fetch(`http://${agent.address.host}:${agent.address.port}/ok`)).status).toBe(200)
  await agent.stop({ graceMs: 1000 })
})

it('never ready: the limit, and what the probe saw', async () => {
  const double = await cluster()
  double.behaviour = (acts) => {
    acts.run()
    acts.print('listening')
    acts.warn('Startup probe failed: HTTP probe failed with statuscode: 401')
  }
  const { message, output } = await failureOn(double, { timeoutMs: 1000 })
  expect(message).toBe(
    'The agent did not answer GET /ok within 1 s. The cluster says: Startup probe failed: HTTP probe failed with statuscode: 401.' +
      " The agent's own authorisation answers: let GET /ok pass without it.",
  )
  expect(output).toEqual(['listening'])
})

it('a pod that is taken away from its node is no failure: the cluster makes another', async () => {
  const double = await cluster()
  let pods = 0
  double.behaviour = (acts) => {
    pods += 1
    acts.run()
    if (pods === 1) acts.evict()
    else acts.ready()
  }
  const agent = await runtimeOn(double).start(imageStart(), effectsOf())
  expect(pods).toBe(2)
  await agent.stop({ graceMs: 1000 })
})

it('a namespace that is not there, and one that is not the platform’s', async () => {
  const double = await cluster()
  const elsewhere = imageStart({ listenerConfig: { k8s_namespace: 'kube-system' } })
  expect((await failureOn(double, { start: elsewhere })).message).toBe(
    "The agent is to run in the namespace 'kube-system', which this platform does not use: it may use agents (PLATFORM_KUBERNETES_NAMESPACES).",
  )
  const missing = runtimeOn(double, { more: { PLATFORM_KUBERNETES_NAMESPACES: 'agents,later' } })
  await expect(missing.start(imageStart({ listenerConfig: { k8s_namespace: 'later' } }), effectsOf())).rejects.toThrow(
    'The cluster does not make the agent\'s Deployment in the namespace later: namespaces "later" not found.',
  )
})

it('rights that are missing, for making and for watching', async () => {
  const double = await cluster()
  double.trouble.next.push({
    match: ({ resource, verb }) => resource === 'services' && verb === 'create',
    times: 1,
    status: 403,
    message: 'services is forbidden',
  })
  expect((await failureOn(double)).message).toBe(
    "The cluster does not make the agent's Service in the namespace agents: services is forbidden.",
  )

  double.trouble.next.push({
    match: ({ resource, verb }) => resource === 'pods' && verb === 'list',
    times: 3,
    status: 403,
    message: 'pods is forbidden',
  })
  expect((await failureOn(double)).message).toBe("The cluster does not tell the platform of the agent's pods: pods is forbidden.")
})

it('ready in the cluster, and not reached from the platform', async () => {
  const double = await cluster()
  double.agent = (_, response) => void response.writeHead(503).end()
  const { message } = await failureOn(double, { timeoutMs: 1000 })
  expect(message).toMatch(
    /^The agent is ready in the cluster, and does not answer GET \/ok at 127\.0\.0\.1:\d+\. A platform outside/,
  )
})

it('a platform outside of the cluster that is not told how to reach it', async () => {
  const double = await cluster()
  const starting = runtimeOn(double, { more: { PLATFORM_KUBERNETES_NODE_HOST: '' } }).start(
    imageStart(),
    effectsOf({ timeoutMs: 500 }),
  )
  await expect(starting).rejects.toThrow(
    /does not answer GET \/ok at agent-support-agent-3f0f6f1a7a4e\.agents\.svc:8000\. A platform outside/,
  )
  await expect.poll(() => double.left()).toEqual([])
})

it('a Deployment that somebody deletes while it starts', async () => {
  const double = await cluster()
  double.behaviour = (acts, pod) => {
    acts.run()
    const [deployment] = double.objects.all('deployments')
    if (deployment !== undefined) double.objects.remove('deployments', deployment)
    double.objects.remove('pods', pod)
    for (const collection of ['secrets', 'services'])
      for (const one of double.objects.all(collection)) double.objects.remove(collection, one)
  }
  expect((await failureOn(double)).message).toBe("The agent's Deployment was deleted while it started.")
})
