import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ACTION, INPUTS, INPUT_NAMES, inputSpec, OUTPUTS, STATE_KEYS } from '../../src/action/registry.ts'
import { renderActionYml } from '../../src/action/registry-yaml.ts'
import { FIELDS } from '../../src/action/parse/fields.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const SOURCE = join(ROOT, 'src', 'action')

type Manifest = {
  inputs: Record<string, { description: string; required: boolean; default?: string }>
  outputs: Record<string, { description: string }>
  runs: Record<string, string>
}

const sources = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path, text: readFileSync(join(SOURCE, path), 'utf8') }))
const allText = sources
  .filter(({ path }) => path !== 'registry.ts')
  .map(({ text }) => text)
  .join('\n')

describe('action.yml', () => {
  const text = readFileSync(join(ROOT, 'action.yml'), 'utf8')
  const manifest = parse(text) as Manifest

  it('is what the registry says', () => {
    expect(text).toBe(renderActionYml())
  })

  it('names an entry for post that the bundle knows as that', () => {
    expect(existsSync(join(ROOT, ACTION.runs.post))).toBe(true)
    expect(readFileSync(join(SOURCE, 'index.ts'), 'utf8')).toContain(`POST_ENTRY = '${basename(ACTION.runs.post)}'`)
  })

  it('has the inputs, outputs and entry points of the registry', () => {
    expect(Object.keys(manifest.inputs)).toEqual(Object.keys(INPUTS))
    expect(Object.keys(manifest.outputs)).toEqual(Object.keys(OUTPUTS))
    expect(manifest.runs).toEqual(ACTION.runs)
    for (const name of INPUT_NAMES) {
      expect(manifest.inputs[name]?.required).toBe(inputSpec(name).required)
      expect(manifest.inputs[name]?.default ?? '').toBe(inputSpec(name).defaultExpression ?? inputSpec(name).default)
    }
  })

  it('is read by a parser that gives the descriptions back unharmed', () => {
    for (const name of INPUT_NAMES) expect(manifest.inputs[name]?.description).toContain(inputSpec(name).description)
  })
})

describe('the registry', () => {
  it('has a default that its own parser accepts, for every input that has one', () => {
    // An expression is for the runner: what comes of it is read.
    const defaults = INPUT_NAMES.filter((name) => !/^$|^\$\{\{/.test(inputSpec(name).default))
    expect(defaults.filter((name) => !('value' in FIELDS[name].parse(inputSpec(name).default)))).toEqual([])
  })

  it.each(Object.keys(OUTPUTS))('has a place that sets the output %s', (name) => {
    expect(allText).toMatch(new RegExp(`journal\\.set\\(\\s*'${name}'`))
  })

  it.each(Object.keys(STATE_KEYS))('has a place that writes the state %s, and one that reads it', (key) => {
    expect(allText).toMatch(new RegExp(`(journal\\.save|io\\.saveState)\\('${key}'`))
    expect(allText).toMatch(new RegExp(`getState\\('${key}'\\)`))
  })

  it('is reached through io.ts alone', () => {
    const runner = /from '@actions\/core'/
    expect(sources.filter(({ text }) => runner.test(text)).map(({ path }) => path)).toEqual(['io.ts'])
  })
})
