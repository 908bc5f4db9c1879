import type { Mode, RawInputs } from '../inputs.ts'
import type { InputProblem } from '../parse/problem.ts'
import type { InputName } from '../registry.ts'

/** Inputs that are fine by themselves and exclude each other. Both are named, and both remedies. */
export function contradictions(raw: RawInputs): InputProblem[] {
  const isSet = (name: InputName): boolean => raw[name] !== ''
  return [
    ...targetProblems(isSet),
    ...sourceProblems(isSet),
    ...smokeTestProblems(isSet),
    ...rollbackProblems(raw),
    ...promoteProblems(raw),
  ]
}

/** What the modes of previews refuse: their deployments are named after `deployment-name`, their source is the pull request. */
export function previewContradictions(mode: Mode, raw: RawInputs): InputProblem[] {
  const isSet = (name: InputName): boolean => raw[name] !== ''
  const problems: InputProblem[] = []
  if (isSet('deployment-id')) {
    const fix = 'take it out: deployment-name is what the names of the previews are made from'
    problems.push({ input: 'deployment-id', problem: `is set, and mode is ${mode}`, fix })
  }
  if (!isSet('deployment-name')) {
    const fix = 'set it to what the names of the previews begin with'
    problems.push({ input: 'deployment-name', problem: `is empty, and mode is ${mode}`, fix })
  }
  if (mode !== 'preview') return problems
  for (const input of ['tag', 'repo-ref'] as const) {
    const fix = `take ${input} out, or use mode: deploy`
    if (isSet(input))
      problems.push({ input, problem: 'is set, and mode is preview, which deploys the head of the pull request', fix })
  }
  const sources = sourceProblems((name) => name !== 'tag' && name !== 'repo-ref' && isSet(name))
  return [...problems, ...sources, ...smokeTestProblems(isSet), ...rollbackProblems(raw)]
}

type IsSet = (name: InputName) => boolean

function targetProblems(isSet: IsSet): InputProblem[] {
  if (isSet('deployment-name') && isSet('deployment-id')) {
    const fix = 'keep deployment-id to update exactly this one, or deployment-name to create it when it is absent'
    return [{ input: 'deployment-id', problem: 'and deployment-name are both set', fix }]
  }
  if (isSet('deployment-name') || isSet('deployment-id')) return []
  return [{ input: 'deployment-name', problem: 'and deployment-id are both empty', fix: 'set one of them' }]
}

function sourceProblems(isSet: IsSet): InputProblem[] {
  const problems: InputProblem[] = []
  if (isSet('tag') && isSet('repo-ref')) {
    problems.push({ input: 'tag', problem: 'and repo-ref are both set', fix: 'keep tag for a tag, or repo-ref for a branch' })
  }
  if (!isSet('image-uri')) return problems
  for (const input of ['repo-url', 'repo-ref', 'tag', 'config-path', 'integration-id', 'build-on-push'] as const) {
    const fix = `take ${input} out to run the image, or image-uri to build from git`
    if (isSet(input)) problems.push({ input, problem: 'and image-uri are both set', fix })
  }
  return problems
}

/** Without its mode `promote-from` would deploy what nobody has proven. */
function promoteProblems(raw: RawInputs): InputProblem[] {
  if (raw['promote-from'] === '' || raw.mode === 'promote') return []
  const problem = `is set, and mode is ${raw.mode || 'deploy'}: nothing would be promoted`
  return [{ input: 'promote-from', problem, fix: 'set mode to promote, or take promote-from out' }]
}

function rollbackProblems(raw: RawInputs): InputProblem[] {
  if (raw['rollback-on-failure'] !== 'true' || raw.wait !== 'false') return []
  const problem = 'and wait: false contradict each other: a failure that is not waited for cannot be rolled back'
  return [{ input: 'rollback-on-failure', problem, fix: 'take one of them out' }]
}

function smokeTestProblems(isSet: IsSet): InputProblem[] {
  if (isSet('smoke-test-input')) return []
  return (['smoke-test-assistant', 'smoke-test-expect'] as const).filter(isSet).map((input) => ({
    input,
    problem: 'is set, and smoke-test-input is empty: no smoke test would run',
    fix: `set smoke-test-input, or take ${input} out`,
  }))
}
