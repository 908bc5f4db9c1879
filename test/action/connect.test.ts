import nock from 'nock'
import { expect, it } from 'vitest'
import { connect } from '../../src/action/connect.ts'
import { deployment, DEPLOYMENT_ID, DEPLOYMENT_PATH, unaborted } from '../client/support/fixtures.ts'
import { allowOnlyMocks, HOST } from '../client/support/mocks.ts'
import { virtualEffects } from '../client/support/virtual-effects.ts'

allowOnlyMocks()

it('gives all clients of a step one budget, and says what it waited for', async () => {
  const effects = virtualEffects()
  const lines: string[] = []
  const clients = connect({
    inputs: { apiKey: 'key-4711', controlPlaneUrl: HOST, dialect: 'spec' },
    effects,
    log: { info: (line) => lines.push(line) },
    redact: (text) => text,
  })
  nock(HOST)
    .get(DEPLOYMENT_PATH)
    .reply(200, deployment(), { RateLimit: '"x";r=0;t=40' })
    .get(DEPLOYMENT_PATH)
    .reply(200, deployment())
  await clients.controlPlane.getDeployment(DEPLOYMENT_ID, unaborted())
  expect(clients.waitedForRateLimitMs()).toBe(0)
  await clients.once.getDeployment(DEPLOYMENT_ID, unaborted())
  expect(effects.sleeps).toEqual([40_000])
  expect(clients.waitedForRateLimitMs()).toBe(40_000)
  expect(clients.rateLimitsWaitedFor()).toEqual(['the control plane'])
  expect(lines).toEqual([`GET ${DEPLOYMENT_PATH} waits 40 s for the rate limit of the control plane.`])
})
