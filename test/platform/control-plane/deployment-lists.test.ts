import { describe, expect, it } from 'vitest'
import { CLUSTERED } from '../cluster-support/topology.ts'
import { create, gitDeployment, imageDeployment } from '../support/control-plane.ts'
import { NOBODY, placesOf, setPlaneScene } from './support/scene.ts'

const scene = setPlaneScene()
const { ask } = scene

describe('listing deployments', () => {
  const list = async (query: string) => (await ask({ path: `/v2/deployments?${query}` })).body
  const names = async (query: string): Promise<string[]> =>
    (await list(query)).resources.map(({ name }: { name: string }) => name)

  it('gives the newest first, in pages whose offset leads to the next one', async () => {
    for (const name of ['one', 'two', 'three']) await create(ask, gitDeployment(name))
    expect(await names('')).toEqual(['three', 'two', 'one'])
    const first = await list('limit=2')
    expect(first.resources.map(({ name }: { name: string }) => name)).toEqual(['three', 'two'])
    expect(first.offset).toBe(2)
    expect(await list('limit=2&offset=2')).toMatchObject({ resources: [{ name: 'one' }], offset: 3 })
    expect(await list('limit=2&offset=9')).toEqual({ resources: [], offset: 9 })
  })

  it('filters', async ({ skip }) => {
    skip(CLUSTERED, 'where queues run, deployments become ready')
    const web = await create(ask, gitDeployment('web-agent'))
    const mail = await create(ask, imageDeployment('mail-agent', { source_config: { deployment_type: 'dev' } }))
    const bot = await create(ask, gitDeployment('bot'))
    await scene.database.db
      .updateTable('deployments')
      .set({ status: 'READY', active_revision_id: bot.latest_revision_id })
      .where('id', '=', bot.id)
      .execute()
    const rows: [string, string[]][] = [
      ['name_contains=agent', ['mail-agent', 'web-agent']],
      ['name_contains=AGENT', ['mail-agent', 'web-agent']],
      ['name_contains=', ['bot', 'mail-agent', 'web-agent']],
      ['name_contains=%25', []],
      ['name_contains=_', []],
      ['name=web', ['web-agent']],
      ['name=agent', []],
      ['status=READY', ['bot']],
      ['status=AWAITING_DATABASE,%20READY', ['bot', 'mail-agent', 'web-agent']],
      ['status=UNUSED', []],
      ['status=', ['bot', 'mail-agent', 'web-agent']],
      [`deployment_ids=${web.id},${mail.id.toUpperCase()}`, ['mail-agent', 'web-agent']],
      [`deployment_ids=${NOBODY}`, []],
      ['deployment_type=dev', ['mail-agent']],
      ['remote_reconciled=true', ['bot']],
      ['remote_reconciled=0', ['mail-agent', 'web-agent']],
      ['image_version=1', []],
      ['tag_value_ids=x', []],
      ['something_else=1', ['bot', 'mail-agent', 'web-agent']],
    ]
    for (const [query, expected] of rows) expect([query, await names(query)]).toEqual([query, expected])
  })

  it.each([
    ['limit=0', 'query.limit: greater_than_equal', 'Input should be greater than or equal to 1'],
    ['limit=101', 'query.limit: less_than_equal', 'Input should be less than or equal to 100'],
    ['limit=', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=ten', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=1.5', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['limit=1e1', 'query.limit: int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    [`limit=${'9'.repeat(500)}`, 'query.limit: less_than_equal', 'Input should be less than or equal to 100'],
    ['offset=-1', 'query.offset: greater_than_equal', 'Input should be greater than or equal to 0'],
    ['offset=9999999999', 'query.offset: less_than_equal', 'Input should be less than or equal to 2147483647'],
    [
      'remote_reconciled=maybe',
      'query.remote_reconciled: bool_parsing',
      'Input should be a valid boolean, unable to interpret input',
    ],
    [
      'status=READY,GONE',
      'query.status: enum',
      "Input should be 'AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE' or 'UNKNOWN', or several of them with commas between",
    ],
    ['deployment_ids=x', 'query.deployment_ids.0: uuid_parsing', 'Input should be a valid UUID'],
    ['name_contains=a%00', 'query.name_contains: value_error', 'Value error, text must not contain a NUL character'],
  ])('refuses %s', async (query, place, message) => {
    const seen = await ask({ path: `/v2/deployments?${query}` })
    expect(seen.status).toBe(422)
    expect(placesOf(seen)).toEqual([place])
    expect(seen.body.detail[0].msg).toBe(message)
  })

  it('takes limits at their bounds, and the last of several values', async () => {
    for (const query of ['limit=1', 'limit=100', 'offset=2147483647', 'limit=+5', 'limit=0&limit=7']) {
      expect((await ask({ path: `/v2/deployments?${query}` })).status).toBe(200)
    }
  })
})
