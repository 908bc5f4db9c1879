import { createApi } from '../../src/platform/api.ts'
import { UNDESCRIBED } from '../../src/contract/fidelity/undescribed.ts'
import { AREAS, DESCRIBED_AREAS, PARTS, READS } from '../../src/contract/fidelity/fidelity.ts'
import { EVERY_BODY, EVERY_ROUTE } from '../../src/contract/fidelity/every-route.ts'
import { VALUES } from '../../src/contract/fidelity/values.ts'
import { createLog } from '../../src/platform/log.ts'
import { parseOptions } from '../../src/platform/options.ts'
import { readContract } from '../contract-surface.ts'
import { type Description, fidelityFaults, type Surface } from '../fidelity-faults.ts'
import { report } from './faults.ts'

/** The platform's routes and its description of them. Nothing that only a request needs is there. */
async function readPlatform(): Promise<Omit<Surface, 'contract'>> {
  const needless = {} as never
  const { app } = createApi({
    ...(needless as object),
    options: parseOptions([], {}),
    log: createLog('silent'),
    counter: null,
    trustedProxies: [],
    renderMetrics: () => '',
    agentRoutes: needless,
    db: needless,
    clock: needless,
    settings: needless,
    rules: needless,
    secretBox: needless,
    offering: 'any',
  } as Parameters<typeof createApi>[0])
  const answer = await app.request('/openapi.json')
  const served = app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  return { description: (await answer.json()) as Description, served }
}

const fidelity = {
  described: DESCRIBED_AREAS,
  undescribed: UNDESCRIBED,
  areas: AREAS,
  everyRoute: EVERY_ROUTE,
  everyBody: EVERY_BODY,
  values: VALUES,
  reads: READS,
  parts: PARTS,
}
report(fidelityFaults(fidelity, { contract: await readContract(), ...(await readPlatform()) }))
