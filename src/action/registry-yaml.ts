import { ACTION, INPUT_NAMES, inputSpec, OUTPUTS } from './registry.ts'

/**
 * The text of action.yml, from the registry. Every scalar is a double-quoted YAML string (JSON is YAML), so that no description
 * can be misread.
 */
export function renderActionYml(): string {
  const lines = [
    '# Written from src/action/registry.ts. Do not edit by hand.',
    `name: ${quote(ACTION.name)}`,
    `description: ${quote(ACTION.description)}`,
    'branding:',
    `  icon: ${ACTION.branding.icon}`,
    `  color: ${ACTION.branding.color}`,
    'inputs:',
    ...INPUT_NAMES.flatMap(renderInput),
    'outputs:',
    ...Object.entries(OUTPUTS).flatMap(([name, output]) => [`  ${name}:`, `    description: ${quote(output.description)}`]),
    'runs:',
    ...Object.entries(ACTION.runs).map(([key, value]) => `  ${key}: ${value}`),
  ]
  return `${lines.join('\n')}\n`
}

function renderInput(name: (typeof INPUT_NAMES)[number]): string[] {
  const input = inputSpec(name)
  const fallback = input.defaultExpression ?? input.default
  const note = input.defaultNote === undefined ? '' : ` Default: ${input.defaultNote}.`
  return [
    `  ${name}:`,
    `    description: ${quote(input.description + note)}`,
    `    required: ${input.required}`,
    ...(fallback === '' ? [] : [`    default: ${quote(fallback)}`]),
  ]
}

function quote(value: string): string {
  return JSON.stringify(value)
}
