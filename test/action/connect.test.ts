import nock from 'nock'
import { afterEach, expect, it } from 'vitest'
import { connect } from '../../src/action/connect.ts'
import { DEPLOYMENT_ID, deployment, endMocks, unaborted } from '../client/support/fixtures.ts'
import { virtualEffects } from '../client/support/virtual-effects.ts'

const HOST = 'https://control-plane.test'

afterEach(endMocks)

it('gives all clients of a step one budget, and says what it waited for', async () => {
  const effects = virtualEffects()
  const lines: string[] = []
  const clients = connect({
    inputs: { apiKey: 'key-4711', controlPlaneUrl: HOST, dialect: 'spec' },
    effects,
    log: { info: (line) => lines.push(line) },
    redact: (text) => text,
  })
  const path = `/v2/deployments/${DEPLOYMENT_ID}`
  nock(HOST).get(path).reply(200, deployment(), { RateLimit: '"x";r=0;t=40' }).get(path).reply(200, deployment())
  await clients.controlPlane.getDeployment(DEPLOYMENT_ID, unaborted())
  expect(clients.waitedForRateLimitMs()).toBe(0)
  await clients.once.getDeployment(DEPLOYMENT_ID, unaborted())
  expect(effects.sleeps).toEqual([40_000])
  expect(clients.waitedForRateLimitMs()).toBe(40_000)
  expect(clients.rateLimitsWaitedFor()).toEqual(['the control plane'])
  expect(lines).toEqual([`GET ${path} waits 40 s for the rate limit of the control plane.`])
})
