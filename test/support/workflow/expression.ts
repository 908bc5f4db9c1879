import { data, Evaluator, Lexer, Parser } from '@actions/expressions'
import type { FunctionDefinition } from '@actions/expressions/funcs/info'
import type { TemplateToken } from '@actions/workflow-parser/templates/tokens/template-token'
import { isBasicExpression, isMapping, isScalar, isSequence, splitAllowedContext } from './github-parser.ts'

/** GitHub's own evaluation of `${{ … }}`. */

export type Plain = null | boolean | number | string | Plain[] | { [name: string]: Plain }
export type Context = Plain | Names | { [name: string]: Context }

/** The contexts by name, and what `success()` and the like answer; what a place may not use is refused as GitHub refuses it. */
export type Scope = { contexts: Readonly<Record<string, Context>>; status?: Status }
export type Status = { success: boolean; failure: boolean; cancelled: boolean }

/**
 * An object of which all names are known. On GitHub a name that is not there is an empty text, and nobody is told; here it is an
 * error, so that a workflow with a misspelt name fails its test.
 */
export class Names {
  readonly path: string
  readonly values: Readonly<Record<string, Context>>
  readonly known: readonly string[]

  /** `known`: names that may be asked for although they have no value yet. */
  constructor(path: string, values: Readonly<Record<string, Context>>, known: readonly string[] = []) {
    this.path = path
    this.values = values
    this.known = [...known, ...Object.keys(values)].map((name) => name.toLowerCase())
  }
}

/** All contexts that a workflow can have. */
const CONTEXTS = ['github', 'env', 'vars', 'job', 'jobs', 'steps', 'runner', 'secrets', 'strategy', 'matrix', 'needs', 'inputs']

/** The value of a part of a workflow, with every expression in it evaluated. */
export function evaluate(token: TemplateToken | undefined, scope: Scope): Plain {
  if (token === undefined) return null
  if (isBasicExpression(token)) return evaluateExpression(token.expression, token.definitionInfo?.allowedContext, scope)
  if (isSequence(token)) return [...token].map((item) => evaluate(item, scope))
  if (isMapping(token)) {
    return Object.fromEntries([...token].map(({ key, value }) => [textOf(evaluate(key, scope)), evaluate(value, scope)]))
  }
  if (!isScalar(token) || token.isExpression) throw new Error(`the workflow double cannot evaluate ${token.typeName()}`)
  return token.toJSON() as Plain
}

/** A text or another scalar as GitHub hands it on to a step. */
export function textOf(value: Plain): string {
  return toData(value, '').coerceString()
}

/** A mapping as it reaches a step: names and texts. */
export function textsOf(token: TemplateToken | undefined, scope: Scope): Record<string, string> {
  const value = evaluate(token, scope) ?? {}
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, textOf(one as Plain)]))
}

/** Whether GitHub takes the value for true. */
export function isTrue(value: Plain): boolean {
  return value !== null && value !== false && value !== 0 && value !== ''
}

function evaluateExpression(expression: string, allowed: readonly string[] | undefined, scope: Scope): Plain {
  const { namedContexts, functions } = splitAllowedContext([...(allowed ?? ['success(0,0)'])])
  const tree = new Parser(tokensOf(expression), namedContexts, functions).parse()
  const contexts = CONTEXTS.map((name) => ({ key: name, value: toData(scope.contexts[name] ?? {}, name) }))
  const result = new Evaluator(tree, new data.Dictionary(...contexts), statusFunctions(scope.status)).evaluate()
  return JSON.parse(JSON.stringify(result, data.replacer)) as Plain
}

/** The lexer turns only the first `''` of a text into one quote, GitHub all of them. */
function tokensOf(expression: string) {
  const { tokens } = new Lexer(expression).lex()
  const isText = (lexeme: string): boolean => lexeme.startsWith("'")
  return tokens.map((token) =>
    isText(token.lexeme) ? { ...token, value: token.lexeme.slice(1, -1).replaceAll("''", "'") } : token,
  )
}

function statusFunctions(status: Status | undefined): Map<string, FunctionDefinition> {
  const answers: Record<string, boolean> = status === undefined ? {} : { ...status, always: true }
  return new Map(
    Object.entries(answers).map(([name, answer]) => [
      name,
      { name, minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(answer) },
    ]),
  )
}

function toData(value: Context, path: string): data.ExpressionData {
  if (value instanceof Names) return new NamesData(value)
  if (Array.isArray(value)) return new data.Array(...value.map((item) => toData(item, path)))
  if (typeof value === 'object' && value !== null) return new data.Dictionary(...pairsOf(value, path))
  return data.reviver('', value as boolean)
}

function pairsOf(values: Readonly<Record<string, Context>>, path: string) {
  return Object.entries(values).map(([key, value]) => ({ key, value: toData(value, `${path}.${key}`) }))
}

class NamesData extends data.Dictionary {
  readonly #names: Names

  constructor(names: Names) {
    super(...pairsOf(names.values, names.path))
    this.#names = names
  }

  override get(key: string): data.ExpressionData | undefined {
    const { path, known } = this.#names
    if (!known.includes(key.toLowerCase())) throw new Error(`there is no ${path}.${key}`)
    return super.get(key)
  }
}
