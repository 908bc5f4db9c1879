import { describe, expect, it } from 'vitest'
import { parseStepInputs, type RawInputs, wantedExport, wantsDeploy } from '../../../src/action/inputs.ts'
import { INPUT_NAMES, inputSpec } from '../../../src/action/registry.ts'
import { githubContext } from '../support/github.ts'

const NOW = Date.parse('2026-08-20T12:00:00Z')
const ID = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'
const EXPORT = {
  'workspace-id': ID,
  'export-project-id': ID,
  'export-destination-id': ID,
  'export-start': '-24h',
  'export-end': 'now',
} satisfies Partial<RawInputs>

function parse(changes: Partial<RawInputs>) {
  const defaults = Object.fromEntries(INPUT_NAMES.map((name) => [name, inputSpec(name).default])) as RawInputs
  return parseStepInputs(
    { ...defaults, 'github-token': '', 'api-key': 'key-of-the-test', ...EXPORT, ...changes },
    githubContext({ repository: '', ref: '' }),
    NOW,
  )
}

describe('the inputs of an export', () => {
  it('are enough by themselves with mode: export', () => {
    const inputs = parse({ mode: 'export', region: 'eu' })
    expect(wantsDeploy(inputs)).toBe(false)
    expect(inputs).toMatchObject({
      warnings: [],
      export: {
        apiUrl: 'https://eu.api.smith.langchain.com',
        projectId: ID,
        destination: { id: ID },
        start: { beforeMs: 86_400_000 },
        end: { beforeMs: 0 },
        wait: true,
        timeoutMs: 72 * 3_600_000,
      },
    })
  })

  it('are warned about when they belong to a deploy', () => {
    expect(parse({ mode: 'export', 'deployment-name': 'agent', tag: 'v1' }).warnings).toEqual([
      'mode is export: deployment-name, tag are not used.',
    ])
  })

  it('come along with those of a deploy', () => {
    const inputs = parse({ 'deployment-name': 'agent', 'image-uri': 'registry.example.com/agent:1' })
    expect(wantsDeploy(inputs)).toBe(true)
    expect(wantedExport(inputs)).toMatchObject({ projectId: ID })
  })

  it('make one destination of the writings of a prefix', () => {
    const bucket = { 'export-destination-id': '', 'export-bucket': 'lake', 'export-bucket-region': 'eu-central-1' }
    const prefixes = ['/a//b/', 'a/b'].map(
      (prefix) => wantedExport(parse({ ...bucket, mode: 'export', 'export-prefix': prefix }))?.destination,
    )
    expect(prefixes[0]).toEqual({ config: { bucket_name: 'lake', prefix: 'a/b', region: 'eu-central-1' } })
    expect(prefixes[1]).toEqual(prefixes[0])
  })

  it('have no end for a schedule', () => {
    const wish = wantedExport(parse({ mode: 'export', 'export-end': '', 'export-interval-hours': '24' }))
    expect(wish).toMatchObject({ intervalHours: 24 })
    expect(wish).not.toHaveProperty('end')
  })

  it('never send the key of one service to another', () => {
    expect(() => parse({ mode: 'export', 'control-plane-url': 'https://own.example.com' })).toThrow('set api-url')
  })
})
