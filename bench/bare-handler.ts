import { readFileSync } from 'node:fs'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/**
 * What the framework alone does with the same paths and the same answers: no key, no validation, no database. The yardstick of
 * `bench/control-plane.ts`, which starts it with the answers in a file.
 */
const answers = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as { deployment: object; deployments: object; revisions: object }

const app = new Hono()
app.get('/v2/deployments', (c) => c.json(answers.deployments))
app.get('/v2/deployments/:id', (c) => c.json(answers.deployment))
app.get('/v2/deployments/:id/revisions', (c) => c.json(answers.revisions))
app.patch('/v2/deployments/:id', async (c) => {
  await c.req.json()
  return c.json(answers.deployment)
})

serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`)
})
