import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ACTION, INPUT_NAMES, inputSpec, OUTPUTS } from '../../src/action/registry.ts'
import { renderActionYml } from '../../src/action/registry-yaml.ts'

const text = renderActionYml()

describe('the text of action.yml', () => {
  it('begins with where it comes from and what the action is', () => {
    expect(text.split('\n').slice(0, 7)).toEqual([
      '# Written from src/action/registry.ts. Do not edit by hand.',
      `name: "${ACTION.name}"`,
      `description: "${ACTION.description}"`,
      'branding:',
      `  icon: ${ACTION.branding.icon}`,
      `  color: ${ACTION.branding.color}`,
      'inputs:',
    ])
  })

  it('ends with what the runner starts, and a line end', () => {
    expect(text.endsWith('\nruns:\n  using: node24\n  main: dist/index.js\n  post: src/action/post-entry.mjs\n')).toBe(true)
  })

  it('reads back as the registry, with each note on a default behind its description', () => {
    const inputs = INPUT_NAMES.map((name) => {
      const { description, required, defaultNote, defaultExpression, default: value } = inputSpec(name)
      const fallback = defaultExpression ?? value
      const note = defaultNote === undefined ? '' : ` Default: ${defaultNote}.`
      return [name, { description: `${description}${note}`, required, ...(fallback === '' ? {} : { default: fallback }) }]
    })
    const outputs = Object.entries(OUTPUTS).map(([name, { description }]) => [name, { description }])
    expect(parse(text)).toEqual({
      name: ACTION.name,
      description: ACTION.description,
      branding: ACTION.branding,
      inputs: Object.fromEntries(inputs) as unknown,
      outputs: Object.fromEntries(outputs) as unknown,
      runs: ACTION.runs,
    })
  })

  it('quotes every description and default, so that none is misread', () => {
    const scalars = text.split('\n').filter((line) => /^ +(description|default): /.test(line))
    expect(scalars.length).toBeGreaterThan(INPUT_NAMES.length)
    expect(scalars.filter((line) => !/: ".*"$/.test(line))).toEqual([])
  })
})
