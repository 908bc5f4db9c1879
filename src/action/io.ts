import { accessSync, appendFileSync, constants, statSync } from 'node:fs'
import { getInput, getState, saveState, setOutput, setSecret } from '@actions/core'
import { createRedactor, masksOf, type Redactor } from './masks.ts'
import { readUser, showAddress } from './parse/address.ts'
import { parseSecretLines } from './parse/secret-lines.ts'
import { INPUT_NAMES, inputSpec, type InputName, type OutputName, type StateKey } from './registry.ts'
import type { RawInputs } from './inputs.ts'

/** The runner's side of the step: inputs, outputs, state, masks and the job summary. No other file talks to it. */
export type Io = {
  /** All inputs as texts. Everything in them that is sensitive has been masked when this returns. */
  readInputs: () => RawInputs
  setOutput: (name: OutputName, value: string) => void
  /** Why an output could not be written, once one could not. */
  outputProblem: () => string | undefined
  /** False when the runner's state file could not be written. */
  saveState: (key: StateKey, value: string) => boolean
  getState: (key: StateKey) => string
  /** Appends to the job summary; throws when the file cannot be written. */
  writeSummary: (markdown: string) => void
}

/**
 * Inputs that say openly what outputs and saved state repeat. What stands in them is no secret there, whatever a variable of the agent
 * says: for `STAGE=production` alone the name and the address of `agent-production` would be of no use to later steps.
 */
const OPEN: readonly InputName[] = ['deployment-name', 'environment', 'control-plane-url', 'image-uri']

/** Outputs that the action words or counts by itself. */
const OWN: ReadonlySet<OutputName> = new Set([
  'status',
  'created',
  'smoke-test',
  'smoke-test-first-event-ms',
  'export-rows',
  'export-files',
  'error-code',
])

/** What a redactor writes for a text that is a secret as a whole. */
const HIDDEN = '***'

/** An id or a commit, in which a number such as a port can stand by chance. */
const ID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{40})$/i

export function createIo({ env, redactor }: { env: NodeJS.ProcessEnv; redactor: Redactor }): Io {
  let problem = unwritable(env['GITHUB_OUTPUT'])
  /** For what machines read: outputs and saved state. */
  const kept = createRedactor()
  const mask = (masks: readonly string[], open: readonly string[] = []): void => {
    redactor.add(masks)
    kept.add(masks.filter((part) => !open.some((text) => text.includes(part))))
    for (const part of masks) setSecret(part)
  }
  const withoutSecrets = (value: string): string => {
    const redacted = kept.redact(value)
    return ID.test(value) && redacted !== HIDDEN ? value : redacted
  }
  return {
    readInputs: () => {
      const apiKey = getInput('api-key')
      // The key itself, however short it is: nothing else may show it.
      if (apiKey !== '') mask([apiKey])
      const open = OPEN.map((name) => showAddress(read(name)))
      for (const value of parseSecretLines(read('secrets')).sensitive) mask(masksOf(value), open)
      for (const name of INPUT_NAMES) if (isCredential(name)) mask(masksOf(read(name)))
      for (const name of INPUT_NAMES) if (inputSpec(name).kind === 'url') mask(masksOf(credentialsOf(read(name))))
      return Object.fromEntries(INPUT_NAMES.map((name) => [name, read(name)])) as RawInputs
    },
    setOutput: (name, value) => {
      try {
        setOutput(name, OWN.has(name) ? value : withoutSecrets(value))
      } catch (error) {
        problem ??= describe(error)
      }
    },
    outputProblem: () => problem,
    saveState: (key, value) => {
      try {
        saveState(key, key === 'deploymentRecord' && value !== '' ? eachText(value, withoutSecrets) : withoutSecrets(value))
        return true
      } catch {
        return false
      }
    },
    getState: (key) => getState(key),
    writeSummary: (markdown) => {
      const path = env['GITHUB_STEP_SUMMARY'] ?? ''
      if (path !== '') appendFileSync(path, `${markdown}\n`)
    },
  }
}

/** A secret that is one value; the key is masked by itself, and variables by their lines. */
function isCredential(name: InputName): boolean {
  const { secret, kind } = inputSpec(name)
  return secret && kind === 'text' && name !== 'api-key'
}

/** A value of several lines keeps its white space: it may be part of a secret. */
function read(name: InputName): string {
  const text = getInput(name, { trimWhitespace: inputSpec(name).kind !== 'lines' })
  return text.trim() === '' ? '' : text
}

/** The password, or what stands in its place in an address of http; a user name of ssh is none. */
function credentialsOf(address: string): string {
  const { before = '', user = '', password } = readUser(address) ?? {}
  return password ?? (/^ssh:/i.test(before) ? '' : user)
}

/** Changes the texts in a record. What is around them, its numbers and its state, which the action words, stay as post needs them. */
function eachText(json: string, change: (text: string) => string): string {
  return JSON.stringify(JSON.parse(json), (name, part: unknown) =>
    typeof part === 'string' && name !== 'state' ? change(part) : part,
  )
}

function unwritable(path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined
  try {
    accessSync(path, constants.W_OK)
    return statSync(path).isFile() ? undefined : `${path} is not a file`
  } catch (error) {
    return describe(error)
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
