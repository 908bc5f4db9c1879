import type { ErrorCode } from '../../src/action/report/error-codes.ts'
import { METADATA, says, startAgentDouble, steps } from './agent-double.ts'
import type { DoubleOptions, ScriptStep } from './control-plane-model.ts'
import { always, CREATE, LIST } from './fault-rules.ts'
import { faults } from './fault-server.ts'
import { LIVE } from './live-deployment.ts'
import type { RunOptions, RunResult } from './runner.ts'
import { type Scene, withScene } from './scene.ts'

/** For each code one way in which a step of the bundle ends with it. Each scene gives the step to `look` before it is cleared away. */
type FailureScene = (look: (result: RunResult, secrets: readonly string[]) => Promise<void>) => Promise<void>

const NPM_CI = 'npm ci exited with code 1: npm error notarget No matching version found for date-fns@40.1.0.'
const ABSENT = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'

const POLL = /\/revisions\/[0-9a-f-]+$/
const DESTINATIONS = /\/bulk-exports\/destinations/
const EXPORTS = /\/bulk-exports(\?|$)/
const EXPORT = /\/bulk-exports\/[0-9a-f-]{36}$/
const EXPORT_RUNS = /\/bulk-exports\/[0-9a-f-]{36}\/runs/

export const FAILURE_SCENES: Readonly<Record<ErrorCode, FailureScene>> = {
  E_INPUT: step({}, { with: { tag: 'v1.2.3', 'build-on-push': 'true', timeout: '10 minutes' } }),
  E_AUTH: step({}, { with: { 'api-key': 'lsv2_pt_this-key-was-revoked' } }),
  E_NOT_FOUND: step({}, { with: { 'deployment-name': '', 'deployment-id': ABSENT } }),
  E_CONFLICT: step({}, { with: { 'repo-url': 'https://github.com/acme/other' } }, ({ plane }) => {
    plane.addDeployment({ name: 'echo-agent', ...LIVE })
  }),
  E_VALIDATION: step({}, {}, ({ network }) => {
    const detail = [
      { loc: ['body', 'source_config', 'resource_spec', 'cpu'], msg: 'Input should be greater than 0', type: 'greater_than' },
    ]
    network.on(CREATE, faults.status(422, { detail }))
  }),
  E_RATE_LIMITED: step({}, {}, ({ network }) => network.on(always(LIST), faults.rateLimited(60))),
  E_UNAVAILABLE: step({}, { with: { timeout: '4s' } }, ({ network }) => network.down()),
  E_PROTOCOL: step({}, {}, ({ network }) => {
    const headers = { 'content-type': 'text/html' }
    network.on(always(LIST), { kind: 'answer', status: 200, body: '<!doctype html><title>Sign in</title>', headers })
  }),
  E_CREATE_FAILED: revision([['CREATING'], ['CREATE_FAILED', { message: 'no database could be provided within the quota' }]]),
  E_BUILD_FAILED: revision([['BUILDING'], ['BUILD_FAILED', { message: NPM_CI }]]),
  E_DEPLOY_FAILED: revision([['DEPLOYING'], ['DEPLOY_FAILED', { message: 'The agent exited with code 1 before it answered.' }]]),
  E_INTERRUPTED: revision([['BUILDING'], ['INTERRUPTED', { message: 'stopped by octocat' }]]),
  E_SUPERSEDED: revision([['QUEUED'], ['SKIPPED']]),
  E_SMOKE_TEST: smokeTest(),
  E_TIMEOUT: step({ script: [['BUILDING']] }, { with: { timeout: '3s' } }),
  E_DESTINATION: exported(({ network }) => {
    network.on({ method: 'GET', path: DESTINATIONS, times: Infinity }, faults.json([]))
    network.on({ method: 'POST', path: DESTINATIONS }, faults.status(400, { detail: 'Access denied' }))
  }),
  E_EXPORT_FAILED: exported(({ network }) => {
    serveExport(network, 'FAILED', [{ day: '2026-08-18', status: 'FAILED', errors: { retry_0: 'destination: Access denied' } }])
  }),
  E_EXPORT_CANCELLED: exported(({ network }) => serveExport(network, 'CANCELLED', [{ day: '2026-08-18', status: 'CANCELLED' }])),
  E_EXPORT_TIMEOUT: exported(({ network }) => serveExport(network, 'RUNNING', [{ day: '2026-08-18', status: 'RUNNING' }])),
  E_CANCELLED: async (look) =>
    withScene({ script: [['BUILDING']] }, async ({ plane, run, secrets }) => {
      await look(await run({ cancelWhen: () => plane.requestsOf('GET', POLL).length > 0 }), secrets)
    }),
}

/** A deploy of the scene's inputs, changed by `run`. */
function step(
  options: DoubleOptions,
  run: Partial<RunOptions> = {},
  prepare: (scene: Scene) => void | Promise<void> = () => undefined,
): FailureScene {
  return async (look) =>
    withScene(options, async (scene) => {
      await prepare(scene)
      await look(await scene.run(run), scene.secrets)
    })
}

/** A deploy whose revision goes through the script. */
function revision(script: readonly ScriptStep[]): FailureScene {
  return step({ script })
}

function smokeTest(): FailureScene {
  return async (look) => {
    const agent = await startAgentDouble({ runs: [steps.stream(METADATA, says('I cannot do that.'))] })
    const rewrite = (body: unknown): unknown =>
      typeof body === 'object' && body !== null && 'url' in body ? { ...body, url: agent.url } : body
    const inputs = {
      'smoke-test-input': '{"messages": [{"role": "user", "content": "Say pong."}]}',
      'smoke-test-assistant': 'agent',
      'smoke-test-expect': '(?i:pong)',
    }
    await step({ script: [['DEPLOYED']], rewrite }, { with: inputs })(look).finally(agent.stop)
  }
}

/** A step of `mode: export`, whose service is what `prepare` makes the network answer. */
function exported(prepare: (scene: Scene) => void): FailureScene {
  return async (look) =>
    withScene({}, async (scene) => {
      prepare(scene)
      const inputs = {
        mode: 'export',
        'workspace-id': scene.plane.workspaceId,
        'api-url': scene.network.url,
        'export-project-id': ABSENT,
        'export-start': '2026-08-18',
        'export-end': '2026-08-19',
        'export-timeout': '3s',
        'export-bucket': 'traces',
        'export-bucket-region': 'eu-central-1',
      }
      const none = { 'control-plane-url': '', 'deployment-name': '', secrets: '', timeout: '' }
      await look(await scene.run({ with: { ...none, ...inputs } }), scene.secrets)
    })
}

type ExportRun = { day: string; status: string; errors?: Record<string, string> }

/** A service whose only export has this status and these runs. */
function serveExport(network: Scene['network'], status: string, runs: readonly ExportRun[]): void {
  const answer = (method: string, path: RegExp, body: unknown): void =>
    network.on({ method, path, times: Infinity }, faults.json(body))
  const config = { bucket_name: 'traces', prefix: '' }
  answer(
    'GET',
    EXPORT_RUNS,
    runs.map(({ day, ...run }, index) => ({ id: `run-${index}`, rows_exported: 0, start_time: `${day}T00:00:00Z`, ...run })),
  )
  answer('GET', EXPORT, { id: ABSENT, status })
  answer('GET', EXPORTS, [])
  answer('POST', EXPORTS, { id: ABSENT, status: 'CREATED' })
  answer('GET', DESTINATIONS, [])
  answer('POST', DESTINATIONS, { id: ABSENT, display_name: 'traces', config })
}
