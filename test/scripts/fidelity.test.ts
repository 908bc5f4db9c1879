import { describe, expect, it } from 'vitest'
import { type Fidelity, fidelityFaults, type Surface } from '../../scripts/fidelity-faults.ts'
import { chosen, type RouteFidelity, specification } from '../../src/contract/fidelity/evidence.ts'

const known = specification('4.1')
const route: RouteFidelity = { route: known, answers: { 200: known }, query: [[known, ['limit']]] }
const fidelity: Fidelity = {
  described: [{ title: 'A', routes: { 'POST /things': route }, objects: {} }],
  undescribed: { title: 'B', routes: { 'GET /ok': { route: known, answers: {} } }, objects: {} },
  areas: [
    {
      title: 'A',
      routes: {},
      objects: {
        thingSchema: {
          title: 'Thing',
          fields: [
            [known, ['id', 'name']],
            [chosen('so'), ['name.first']],
          ],
        },
      },
    },
  ],
  everyRoute: { 401: known },
  everyBody: { 413: known },
  values: { COLOURS: { values: [[known, ['red', 'blue']]] } },
  reads: { thingAnswerSchema: 'thingSchema' },
  parts: {},
}
const surface: Surface = {
  contract: {
    objects: new Map([
      ['thingSchema', ['id', 'name', 'name.first']],
      ['thingAnswerSchema', ['id']],
    ]),
    lists: new Map([
      ['COLOURS', ['red', 'blue']],
      ['FINAL_COLOURS', ['blue']],
    ]),
  },
  description: {
    paths: {
      '/things': {
        post: {
          parameters: [
            { name: 'limit', in: 'query' },
            { name: 'thing_id', in: 'path' },
          ],
          requestBody: { content: { 'application/json': { schema: { properties: { id: {}, name: {} } } } } },
          responses: { 200: { content: { 'application/json': { schema: { items: { $ref: '#/x' } } } } }, 401: {}, 413: {} },
        },
      },
    },
  },
  served: ['POST /things', 'POST /api/v1/things', 'GET /ok', 'GET /api/v1/ok'],
}

const describedAs = (changed: RouteFidelity): Fidelity => ({
  ...fidelity,
  described: [{ title: 'A', routes: { 'POST /things': changed }, objects: {} }],
})
const withOperation = (change: object): Surface => {
  const post = surface.description.paths['/things']!['post']!
  return { ...surface, description: { paths: { '/things': { post: { ...post, ...change } } } } }
}
const withObject = (name: string, fields: readonly string[]): Surface => ({
  ...surface,
  contract: { ...surface.contract, objects: new Map([...surface.contract.objects, [name, fields]]) },
})
const withList = (name: string, words: readonly string[]): Surface => ({
  ...surface,
  contract: { ...surface.contract, lists: new Map([...surface.contract.lists, [name, words]]) },
})

describe('the check of evidence', () => {
  it('finds nothing where every route, field and word has one', () => {
    expect(fidelityFaults(fidelity, surface)).toEqual([])
  })

  it.each<[string, Fidelity, Surface, string]>([
    ['an object without evidence', fidelity, withObject('newSchema', ['id']), 'newSchema has no evidence'],
    [
      'a field without evidence',
      fidelity,
      withObject('thingSchema', ['id', 'name', 'name.first', 'age']),
      'thingSchema age has no evidence',
    ],
    [
      'a field that has gone',
      fidelity,
      withObject('thingSchema', ['id', 'name']),
      'thingSchema name.first has evidence and is not there',
    ],
    [
      'a field that is read and not answered',
      fidelity,
      withObject('thingAnswerSchema', ['id', 'age']),
      'thingAnswerSchema reads age, which thingSchema does not have',
    ],
    [
      'an object that has gone',
      { ...fidelity, reads: { ...fidelity.reads, oldSchema: 'thingSchema' } },
      surface,
      'there is evidence for oldSchema, which src/contract does not export',
    ],
    ['a status without evidence', fidelity, withList('COLOURS', ['red', 'blue', 'green']), 'COLOURS green has no evidence'],
    ['a list without evidence', fidelity, withList('THING_STATUSES', ['NEW']), 'the words of THING_STATUSES have no evidence'],
    [
      'a word with two',
      {
        ...fidelity,
        values: {
          COLOURS: {
            values: [
              [known, ['red', 'blue']],
              [chosen('so'), ['red']],
            ],
          },
        },
      },
      surface,
      'COLOURS red has evidence twice',
    ],
    ['a route without evidence', { ...fidelity, described: [] }, surface, 'POST /things has no evidence'],
    [
      'a route that has gone',
      fidelity,
      { ...surface, description: { paths: {} }, served: ['GET /ok'] },
      'there is evidence for POST /things, which the platform does not describe',
    ],
    [
      'an HTTP status without evidence',
      fidelity,
      withOperation({ responses: { 200: {}, 401: {}, 413: {}, 409: {} } }),
      'POST /things: status 409 has no evidence',
    ],
    [
      'an HTTP status that has gone',
      describedAs({ ...route, answers: { 200: known, 404: known } }),
      surface,
      'POST /things: status 404 has evidence and is not there',
    ],
    [
      'a parameter without evidence',
      fidelity,
      withOperation({
        parameters: [
          { name: 'limit', in: 'query' },
          { name: 'offset', in: 'query' },
        ],
      }),
      'POST /things: parameter offset has no evidence',
    ],
    [
      'a body of its own without evidence',
      fidelity,
      withOperation({ requestBody: { content: { 'application/json': { schema: { properties: { other: {} } } } } } }),
      'POST /things: body has the fields other, which are no object of src/contract and have no evidence',
    ],
    [
      'a body that is described otherwise',
      describedAs({ ...route, body: [[known, ['id']]] }),
      surface,
      'POST /things: body name has no evidence',
    ],
    [
      'a served route without evidence',
      fidelity,
      { ...surface, served: [...surface.served, 'GET /hidden'] },
      'the platform serves GET /hidden has no evidence',
    ],
  ])('finds %s', (_what, changed, there, fault) => {
    expect(fidelityFaults(changed, there)).toContain(fault)
  })
})
