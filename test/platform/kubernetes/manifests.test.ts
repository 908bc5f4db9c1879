import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import {
  deploymentManifest,
  type ManifestPlan,
  ownerOf,
  secretManifest,
  serviceManifest,
} from '../../../src/platform/control-plane/runtimes/kubernetes/manifests.ts'
import { nameOf, placeOf, referenceOf } from '../../../src/platform/control-plane/runtimes/kubernetes/names.ts'
import { clusterResources } from '../../../src/platform/control-plane/runtimes/kubernetes/resources.ts'
import { resourceSpecSchema } from '../../../src/contract/resource-spec.ts'
import { memoryLog } from '../support/memory-log.ts'
import { imageStart } from './support/request.ts'
import { ruleFaults } from './support/rules.ts'
import { schemaFaults } from './support/schema.ts'

const EXAMPLES = path.join(import.meta.dirname, '../../../examples/kubernetes')

const faultsOf = (object: object) => [...schemaFaults(object), ...ruleFaults(object)]

function planOf(request = imageStart(), settings: Partial<ManifestPlan['settings']> = {}): ManifestPlan {
  return {
    request,
    place: { namespace: 'agents', name: nameOf(request) },
    installationId: '8f6f7a55-0d0f-4b4e-9f1f-0a4c9f7f5a10',
    settings: { pullSecrets: [], nodeHost: null, runAsUser: null, ...settings },
    resources: clusterResources(request.resources, memoryLog()),
    timeoutMs: 300_000,
  }
}

function manifestsOf(plan: ManifestPlan) {
  const deployment = deploymentManifest(plan)
  const owner = ownerOf({ ...deployment, metadata: { ...deployment.metadata, uid: 'c1d2' } })
  return { deployment, secret: secretManifest(plan, owner), service: serviceManifest(plan, owner) }
}

it('makes manifests that are Kubernetes, whatever it is given', () => {
  const number = (min: number, max: number) => fc.option(fc.double({ min, max, noNaN: true }), { nil: null })
  const whole = (min: number, max: number) => fc.option(fc.integer({ min, max }), { nil: null })
  const resources = fc.record({
    min_scale: whole(0, 100),
    max_scale: whole(0, 100),
    cpu: number(0.1, 8),
    cpu_limit: number(0.1, 16),
    memory_mb: whole(64, 1_048_576),
    memory_limit_mb: whole(64, 1_048_576),
  })
  const request = fc.record({
    agentId: fc.uuid(),
    deploymentId: fc.uuid(),
    revisionId: fc.uuid(),
    deploymentName: fc.oneof(
      fc.string({ maxLength: 255 }),
      fc.string({ minLength: 28, maxLength: 63 }),
      fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
    ),
    imageUri: fc.constantFrom('agent', 'registry.example.com:5000/team/agent:1', `agent@sha256:${'a'.repeat(64)}`),
    resources: fc.option(resources, { nil: null }),
    env: fc.dictionary(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,40}$/), fc.string({ maxLength: 200, unit: 'grapheme' })),
  })
  const settings = fc.record({
    pullSecrets: fc.array(fc.constantFrom('registry', 'registry.two'), { maxLength: 3 }),
    nodeHost: fc.constantFrom(null, '10.0.0.1'),
    runAsUser: fc.constantFrom(null, 1000),
  })
  fc.assert(
    fc.property(request, settings, (given, chosen) => {
      const { deployment, secret, service } = manifestsOf(planOf(imageStart(given), chosen))
      expect([deployment, secret, service].flatMap(faultsOf)).toEqual([])
      expect(secret.stringData).toMatchObject(
        Object.fromEntries(Object.entries(given.env).filter(([name]) => !SET_HERE.has(name))),
      )
      expect(JSON.stringify(deployment)).not.toContain('"env":')
    }),
    { numRuns: 300 },
  )
})

/** What the platform sets itself for images, whatever was given. */
const SET_HERE = new Set(['PORT', 'LOG_JSON', 'DATABASE_URI', 'POSTGRES_URI', 'REDIS_URI'])

it.each([
  [
    'a field that there is not',
    (one: Manifests) => Object.assign(one.deployment.spec!.template.spec!, { restartPolcy: 'Always' }),
    /restartPolcy: V1PodSpec has no such field/,
  ],
  ['a field of the wrong type', (one: Manifests) => Object.assign(one.deployment.spec!, { replicas: '2' }), /replicas/],
  [
    'a required field that is missing',
    (one: Manifests) => delete (one.deployment.spec as { selector?: unknown }).selector,
    /required .*selector/,
  ],
  [
    'a name that no Service may have',
    (one: Manifests) => Object.assign(one.service.metadata!, { name: '1st' }),
    /metadata\.name/,
  ],
  [
    'an unknown field of a probe',
    (one: Manifests) => Object.assign(one.deployment.spec!.template.spec!.containers[0]!.livenessProbe!, { path: '/ok' }),
    /V1Probe has no such field/,
  ],
])('the check finds %s', (_, spoil, fault) => {
  const made = manifestsOf(planOf())
  spoil(made)
  expect([made.deployment, made.secret, made.service].flatMap(faultsOf).join('\n')).toMatch(fault)
})

type Manifests = ReturnType<typeof manifestsOf>

it('keeps the environment out of everything but the Secret', () => {
  const { deployment, secret, service } = manifestsOf(planOf(imageStart({ env: { OPENAI_API_KEY: 'sk-very-secret' } })))
  expect(secret.stringData).toMatchObject({ OPENAI_API_KEY: 'sk-very-secret', PORT: '8000' })
  expect(JSON.stringify([deployment, service])).not.toMatch(/sk-very-secret|OPENAI/)
  expect(deployment.spec?.template.spec?.containers[0]?.envFrom).toEqual([{ secretRef: { name: secret.metadata?.name } }])
})

it('gives the container its probes, its limits and as few rights as it can', () => {
  const resources = { min_scale: 2, cpu: 0.5, cpu_limit: 2, memory_mb: 512, memory_limit_mb: 1024 }
  const { deployment } = manifestsOf(
    planOf(imageStart({ resources, env: { PORT: '9000' } }), { runAsUser: 1000, pullSecrets: ['registry'] }),
  )
  const pod = deployment.spec!.template.spec!
  expect(deployment.spec?.replicas).toBe(2)
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 900,
    imagePullSecrets: [{ name: 'registry' }],
    securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
  })
  expect(pod.containers[0]).toMatchObject({
    imagePullPolicy: 'Always',
    ports: [{ containerPort: 9000 }],
    resources: { requests: { cpu: '500m', memory: '512Mi' }, limits: { cpu: '2000m', memory: '1024Mi' } },
    readinessProbe: { httpGet: { path: '/ok', port: 9000 } },
    livenessProbe: { httpGet: { path: '/ok', port: 9000 } },
    securityContext: { allowPrivilegeEscalation: false, privileged: false, capabilities: { drop: ['ALL'] } },
  })
  expect(pod.containers[0]?.securityContext?.capabilities?.add).toBeUndefined()
})

it('takes of resource_spec what a cluster understands, and says what has no effect', () => {
  const log = memoryLog()
  const spec = resourceSpecSchema.parse({
    min_scale: 0,
    max_scale: 5,
    labels: { team: 'a' },
    annotations: { 'example.com/x': 'y' },
    image_pull_secrets: [{ name: 'mine' }],
    service_account_name: 'agent',
    queue_cpu: 2,
    sidecars: [{}],
  })
  expect(clusterResources(spec, log)).toMatchObject({
    replicas: 1,
    labels: { team: 'a' },
    annotations: { 'example.com/x': 'y' },
    pullSecrets: [{ name: 'mine' }],
    serviceAccountName: 'agent',
  })
  expect(log.text()).toBe(
    [
      'min_scale is 0, and this platform does not scale to zero: one replica runs',
      'max_scale is 5, and this platform does not scale by load: min_scale is what runs (1)',
      'resource_spec: without effect here: queue_cpu, sidecars',
    ].join('\n'),
  )
})

it('does not let the labels of a resource_spec hide an agent', () => {
  const resources = resourceSpecSchema.parse({ labels: { 'deploy-agent-server/agent': 'other', team: 'a' } })
  const { deployment } = manifestsOf(planOf(imageStart({ resources })))
  expect(deployment.spec?.template.metadata?.labels).toMatchObject({ ...deployment.spec?.selector.matchLabels, team: 'a' })
  expect(faultsOf(deployment)).toEqual([])
})

it('reads back the references that it writes, and no others', () => {
  const place = { namespace: 'agents', name: nameOf(imageStart()) }
  expect(placeOf(referenceOf(place))).toEqual(place)
  for (const other of ['docker:abc', 'process:1:2', 'kubernetes:agents', 'kubernetes:a/b/c', 'kubernetes:../x'])
    expect(placeOf(other)).toBeNull()
})

it('names two starts of one deployment differently', () => {
  const names = [
    imageStart({ agentId: '11111111-1111-4111-8111-111111111111' }),
    imageStart({ agentId: '22222222-2222-4222-8222-222222222222' }),
  ].map(nameOf)
  expect(new Set(names).size).toBe(2)
})

it('the examples are manifests as well', () => {
  const files = readdirSync(EXAMPLES).filter((file) => file.endsWith('.yaml'))
  const documents = files.flatMap((file) => parseAllDocuments(readFileSync(path.join(EXAMPLES, file), 'utf8')))
  expect(documents.length).toBeGreaterThan(5)
  for (const document of documents) {
    expect('errors' in document ? document.errors : []).toEqual([])
    expect(schemaFaults((document as { toJS(): unknown }).toJS())).toEqual([])
  }
})
