import { describe, expect, it } from 'vitest'
import { FIELDS } from '../../../src/action/parse/fields.ts'
import { type InputProblem, inputFailure } from '../../../src/action/parse/problem.ts'
import { parseSourceConfig } from '../../../src/action/parse/source-config.ts'
import { isHttp, isLoopback, notHttp, parseAddress, showAddress } from '../../../src/action/parse/address.ts'
import { normaliseRepoUrl, parseRepoUrl, sameRepoUrl } from '../../../src/action/parse/repo-url.ts'
import { parseSecretLines } from '../../../src/action/parse/secret-lines.ts'
import { parseAssistant, parseExpect } from '../../../src/action/parse/smoke-test.ts'
import type { InputName } from '../../../src/action/registry.ts'

const ID = '1b4e28ba-2fa1-4d2b-883f-0016d3cca427'

describe('the text of an input', () => {
  it.each<[InputName, string, object]>([
    ['api-key', '!~', { value: '!~' }],
    ['api-key', 'x'.repeat(4096), { value: 'x'.repeat(4096) }],
    ['api-key', 'x'.repeat(4097), { problem: 'contains characters that no header can carry' }],
    ['api-key', 'a b', { problem: 'contains characters that no header can carry' }],
    ['api-key', 'ä', { problem: 'contains characters that no header can carry' }],
    ['api-key', 'a\n', { problem: 'contains characters that no header can carry' }],
    ['workspace-id', ID.toUpperCase(), { value: ID }],
    ['workspace-id', 'agent', { problem: 'is not a UUID' }],
    ['region', 'eu', { value: 'eu' }],
    ['region', 'EU', { problem: 'is not one of them', fix: 'write eu' }],
    ['region', 'mars', { problem: 'is not one of them' }],
    ['deployment-name', 'agent-1', { value: 'agent-1' }],
    ['deployment-name', 'My Agent', { problem: 'is not a name of a deployment', fix: 'write my-agent' }],
    ['deployment-name', '???', { problem: 'is not a name of a deployment' }],
    ['promote-from', ID.toUpperCase(), { value: { id: ID } }],
    ['promote-from', 'staging', { value: { name: 'staging' } }],
    ['promote-from', 'My Agent', { problem: 'is not a name of a deployment', fix: 'write my-agent' }],
    ['repo-ref', 'feature/x', { value: 'feature/x' }],
    ['repo-ref', 'refs/tags/v1', { value: 'refs/tags/v1' }],
    ['repo-ref', 'refs/heads/feature/x', { problem: 'is not a branch or a tag', fix: 'write feature/x' }],
    ['repo-ref', 'refs/heads/', { problem: 'is not a branch or a tag' }],
    ['repo-ref', 'x refs/heads/main', { problem: 'is not a branch or a tag' }],
    ['repo-ref', 'a b', { problem: 'is not a branch or a tag' }],
    ['tag', 'v1', { value: 'refs/tags/v1' }],
    ['tag', 'refs/tags/v1', { value: 'refs/tags/v1' }],
    ['tag', 'refs/heads/main', { problem: 'is a ref, but not of a tag', fix: 'use repo-ref for a branch' }],
    ['tag', 'a b', { problem: 'is not the name of a tag' }],
    ['tag', '-v1', { problem: 'is not the name of a tag' }],
    ['tag', 'x'.repeat(245), { value: `refs/tags/${'x'.repeat(245)}` }],
    ['tag', 'x'.repeat(246), { problem: 'is not the name of a tag' }],
    ['config-path', 'a/langgraph.json', { value: 'a/langgraph.json' }],
    ['config-path', '../langgraph.json', { problem: 'is not such a path' }],
    ['image-uri', 'registry.example.com/agent:1', { value: 'registry.example.com/agent:1' }],
    ['image-uri', 'HTTPS://r.example.com/a', { problem: 'begins with a scheme', fix: 'write r.example.com/a' }],
    ['image-uri', 'https://user:hunter2@r.example.com/a', { problem: 'begins with a scheme' }],
    ['image-uri', 'http://r.example.com/a', { problem: 'begins with a scheme', fix: 'write r.example.com/a' }],
    ['deployment-type', 'dev_2-x', { value: 'dev_2-x' }],
    ['deployment-type', 'x'.repeat(64), { value: 'x'.repeat(64) }],
    ['deployment-type', 'x'.repeat(65), { problem: 'is not one word' }],
    ['deployment-type', 'a b', { problem: 'is not one word' }],
    ['secrets', 'A=1', { value: [{ name: 'A', value: '1' }] }],
    [
      'secrets',
      'x\nA=1\nA=2',
      {
        problem:
          'cannot be used: line 1 is neither NAME=value nor NAME<<END (a value of several lines needs NAME<<END); ' +
          'line 3: A is there already, in line 2',
      },
    ],
    ['environment', 'x'.repeat(255), { value: 'x'.repeat(255) }],
    ['environment', 'x'.repeat(256), { problem: 'is 256 characters long' }],
    ['environment', 'a\nb', { problem: 'has more than one line, or control characters' }],
    ['environment', 'a\u2028b', { problem: 'has more than one line, or control characters' }],
    ['environment', 'a\u2029b', { problem: 'has more than one line, or control characters' }],
    ['wait', 'true', { value: true }],
    ['wait', 'false', { value: false }],
    ...['TRUE', 'Yes', 'on', '1'].map((text): [InputName, string, object] => [
      'wait',
      text,
      { problem: 'is not a boolean', fix: 'write true' },
    ]),
    ...['False', 'no', 'OFF', '0'].map((text): [InputName, string, object] => [
      'wait',
      text,
      { problem: 'is not a boolean', fix: 'write false' },
    ]),
    ['wait', 'maybe', { problem: 'is not a boolean' }],
  ])('%s: %j', (name, text, parsed) => {
    expect((FIELDS[name] as { parse: (text: string) => object }).parse(text)).toEqual(parsed)
  })

  it('is described in words that people can follow', () => {
    const accepted = (...names: InputName[]) => names.map((name) => FIELDS[name].accepted)
    expect(accepted('region', 'on-cancel', 'wait', 'workspace-id', 'environment', 'tag', 'api-key', 'promote-from')).toEqual([
      'us, eu, apac, aws',
      'leave, interrupt',
      'true or false',
      'a UUID such as 1b4e28ba-2fa1-4d2b-883f-0016d3cca427',
      'a name of one line, 255 characters at most',
      'the name of a tag, such as v1.2.3 or refs/tags/v1.2.3',
      'a key without white space, on one line',
      'the name or the id of a deployment',
    ])
    expect(accepted('source-config')[0]).toMatch(/^a YAML or JSON object with the fields \w+(, \w+)*$/)
    expect(accepted('source-config')[0]).not.toMatch(/repo_url|integration_id|deployment_type|build_on_push/)
    expect(accepted('repo-url')).toEqual([
      'an address like https://github.com/team/agent or git@github.com:team/agent.git, without a password or token',
    ])
    expect(accepted('secrets')).toEqual([
      'lines NAME=value, each value literal up to the end of its line; NAME<<END … END for a value of several lines; ' +
        'blank lines and lines that begin with # are skipped',
    ])
    expect(accepted('smoke-test-assistant', 'smoke-test-expect')).toEqual([
      "a graph's name or an assistant's UUID, 255 characters at most, on one line",
      'a JavaScript regular expression without slashes around it, 2000 characters at most; (?i:…) ignores case',
    ])
  })
})

describe('the failure of bad inputs', () => {
  it.each<[string, InputProblem[], { message: string; next: string }]>([
    [
      'has one sentence for one',
      [{ input: 'timeout', value: '10', problem: 'has no unit', accepted: 'a duration', fix: 'write 10m' }],
      {
        message: "timeout '10' has no unit; accepted: a duration; fix: write 10m.",
        next: 'Correct `timeout` in the workflow file.',
      },
    ],
    [
      'has a line for each of several',
      [
        { input: 'tag', problem: 'and repo-ref are both set' },
        { input: 'wait', value: 'a\nb', problem: 'is not a boolean' },
      ],
      {
        message: "2 inputs cannot be used:\n- tag and repo-ref are both set.\n- wait 'a b' is not a boolean.",
        next: 'Correct `tag` and `wait` in the workflow file.',
      },
    ],
    [
      'names each input once',
      [
        { input: 'tag', problem: 'is a' },
        { input: 'wait', problem: 'is b' },
        { input: 'tag', problem: 'is c' },
        { input: 'mode', value: 'x'.repeat(121), problem: 'is d' },
      ],
      {
        message: `4 inputs cannot be used:\n- tag is a.\n- wait is b.\n- tag is c.\n- mode '${'x'.repeat(119)}…' is d.`,
        next: 'Correct `tag`, `wait` and `mode` in the workflow file.',
      },
    ],
  ])('%s', (_, problems, expected) => {
    expect(inputFailure(problems)).toMatchObject({
      ...expected,
      code: 'E_INPUT',
      tried: 'Nothing was sent to the control plane.',
    })
  })
})

describe('an address', () => {
  it.each([
    ['https://u@a.example.com', { problem: 'carries credentials', fix: 'take them out: the key goes into api-key' }],
    ['https://:p@a.example.com', { problem: 'carries credentials', fix: 'take them out: the key goes into api-key' }],
    ['https://a.example.com/x?y=1', { problem: 'has a query or a fragment', fix: 'end it after the path' }],
    ['https://a.example.com/x#y', { problem: 'has a query or a fragment', fix: 'end it after the path' }],
    ['https://a.example.com/v1', { problem: 'ends with /v1', fix: 'leave that out: the action adds it' }],
    ['https://a.example.com/x/v2/', { problem: 'ends with /v2', fix: 'leave that out: the action adds it' }],
    ['https://a.example.com/v2/deployments', { problem: 'ends with /v2/deployments', fix: 'leave that out: the action adds it' }],
    ['https://a.example.com/api/v1', { problem: 'ends with /api/v1', fix: 'leave that out: the action adds it' }],
    [
      'https://a.example.com/api/v1/bulk-exports',
      { problem: 'ends with /api/v1/bulk-exports', fix: 'leave that out: the action adds it' },
    ],
    ['https://a.example.com/v3', { value: { url: 'https://a.example.com/v3' } }],
    ['https://a.example.com/v2/x//', { value: { url: 'https://a.example.com/v2/x' } }],
    [
      'http://a.example.com:81/x',
      {
        value: {
          url: 'http://a.example.com:81/x',
          warning: 'control-plane-url is plain http: the API key travels unencrypted to a.example.com:81',
        },
      },
    ],
    ['http://a.localhost', { value: { url: 'http://a.localhost' } }],
  ])('%s', (text, parsed) => {
    expect(parseAddress(text)).toEqual(parsed)
  })

  it('is named in the warning by the input that it is of', () => {
    expect(parseAddress('http://a.example.com', 'api-url')).toEqual({
      value: {
        url: 'http://a.example.com',
        warning: 'api-url is plain http: the API key travels unencrypted to a.example.com',
      },
    })
  })

  it.each([
    ['localhost', true],
    ['a.localhost', true],
    ['[::1]', true],
    ['127.0.0.1', true],
    ['127.10.20.30', true],
    ['localhost.example.com', false],
    ['notlocalhost', false],
    ['127.0.0.1.example.com', false],
    ['x127.0.0.1', false],
    ['[::2]', false],
    ['10.0.0.1', false],
  ])('%s is this machine: %j', (host, expected) => {
    expect(isLoopback(host)).toBe(expected)
  })

  it('is http, or shown as what it is', () => {
    expect(['https://a', 'http://a', 'ftp://a'].map((text) => isHttp(new URL(text)))).toEqual([true, true, false])
    expect(notHttp('ftp://a')).toEqual({ problem: 'is neither https nor http' })
    expect(showAddress('https://a.example.com/x')).toBe('https://a.example.com/x')
    expect(showAddress('https://a.example.com/x@y')).toBe('https://a.example.com/x@y')
    expect(showAddress('https://a.example.com/#x\ny')).toBe('https://a.example.com/?***')
    expect(showAddress('https://u@v@a.example.com')).toBe('https://***@a.example.com')
  })
})

describe('the address of a repository', () => {
  const none = 'is not the address of a git repository'
  const credentials = {
    problem: 'carries credentials, which the control plane would store and show',
    fix: 'take them out and use integration-id',
  }
  it.each([
    ['acme/agents', { problem: none, fix: 'write https://github.com/acme/agents' }],
    ['acme/agents/x', { problem: none }],
    ['ftp://a.example.com/x', { problem: none }],
    ['https://', { problem: none }],
    ['x https://github.com/a', { problem: 'contains white space' }],
    ['https://github.com/a\u007f', { problem: 'contains white space' }],
    ['https://github.com/a\u0000', { problem: 'contains white space' }],
    ['https://token@github.com/a', credentials],
    ['https://:word@github.com/a', credentials],
    ['ssh://git:word@a.example.com/x', credentials],
    ['ssh://git@a.example.com/x', { value: 'ssh://git@a.example.com/x' }],
    ['GIT://a.example.com/x', { value: 'GIT://a.example.com/x' }],
    ['https://github.com/a?b', { problem: 'has a query or a fragment', fix: 'end it after the path' }],
    ['https://github.com/a#b', { problem: 'has a query or a fragment', fix: 'end it after the path' }],
    ['git@host::x', { problem: none }],
    [`https://a.example.com/${'x'.repeat(2026)}`, { value: `https://a.example.com/${'x'.repeat(2026)}` }],
    [`https://a.example.com/${'x'.repeat(2027)}`, { problem: 'is longer than 2048 characters' }],
  ])('%j', (text, parsed) => {
    expect(parseRepoUrl(text)).toEqual(parsed)
  })

  it.each([
    [' https://Git.Example.com:443/A/b.git// ', 'https://git.example.com/A/b'],
    ['https://git.example.com/a.git.git', 'https://git.example.com/a.git'],
    ['https://git.example.com/a/.git', 'https://git.example.com/a'],
    ['ssh://git@Host.example.com/a.git', 'ssh://git@host.example.com/a'],
    ['git@host:a/b.git//', 'git@host:a/b'],
    ['git@host:a/b.github', 'git@host:a/b.github'],
    ['https://git.example.com/a.github', 'https://git.example.com/a.github'],
  ])('%j is spelt %s', (text, spelling) => {
    expect(normaliseRepoUrl(text)).toBe(spelling)
  })

  it('is compared without regard to case on GitHub only', () => {
    expect(sameRepoUrl('https://www.github.com/A/B', 'https://www.github.com/a/b')).toBe(true)
    expect(sameRepoUrl('http://github.com/A/B', 'http://github.com/a/b')).toBe(true)
    expect(sameRepoUrl('https://github.com.example.com/A', 'https://github.com.example.com/a')).toBe(false)
    expect(sameRepoUrl('https://a.example.com/https://github.com/A', 'https://a.example.com/https://github.com/a')).toBe(false)
  })
})

describe('lines of secrets', () => {
  const neither = (line: number) => `line ${line} is neither NAME=value nor NAME<<END (a value of several lines needs NAME<<END)`
  const empty = (what: string) => `${what} has no value (a secret that does not exist in this repository is an empty text)`
  it.each<[string, string[], string[]]>([
    ['\n  \n# x\n  # y\nword', [neither(5)], ['word']],
    ['A<<\nB=1', [neither(1)], ['A<<', '1']],
    ['A<<END\nx\ny', ['line 1: the value of A has no end line'], ['x\ny']],
    ['A<< END \nx\nEND\nword', [neither(4)], ['x', 'word']],
    ['A=1\n\nA=2\nA=3', ['line 3: A is there already, in line 1', 'line 4: A is there already, in line 3'], ['1', '2', '3']],
    ['MODEL_KEY=', [`line 1: ${empty('MODEL_KEY')}`], ['']],
    ['A=  ', [`line 1: ${empty('A')}`], ['  ']],
    ['aB=', [`line 1: ${empty('the variable')}`], ['', 'aB']],
    ['_A=', [`line 1: ${empty('the variable')}`], ['', '_A']],
    ['POSTGRES_URI=x', ['line 1: POSTGRES_URI is reserved: the service sets it itself'], ['x']],
    ['A=x\0', ['line 1: the value of A contains a NUL character'], ['x\0']],
    [`${'A'.repeat(300)}=x`, [`line 1: the name or the value of ${'A'.repeat(40)} is too long`], ['x']],
  ])('%j', (text, problems, sensitive) => {
    const parsed = parseSecretLines(text)
    expect([parsed.problems, parsed.sensitive]).toEqual([problems, sensitive])
  })

  it('are five hundred at most', () => {
    const lines = (count: number) => Array.from({ length: count }, (_, index) => `A${index}=x`).join('\n')
    expect(parseSecretLines(lines(500)).problems).toEqual([])
    expect(parseSecretLines(lines(501)).problems).toEqual(['there are 501 variables, and 500 at most'])
  })

  it('lose the return at their ends', () => {
    expect(parseSecretLines('A=x y\r\nB<<END\r\nz\r\nEND\r\nC=1').secrets).toEqual([
      { name: 'A', value: 'x y' },
      { name: 'B', value: 'z' },
      { name: 'C', value: '1' },
    ])
  })
})

describe('a source configuration', () => {
  it.each([
    ['repo_url: x', { problem: 'has the field repo_url', fix: 'take it out and use the input repo-url' }],
    ['integration_id: x', { problem: 'has the field integration_id', fix: 'take it out and use the input integration-id' }],
    ['deployment_type: x', { problem: 'has the field deployment_type', fix: 'take it out and use the input deployment-type' }],
    ['build_on_push: true', { problem: 'has the field build_on_push', fix: 'take it out and use the input build-on-push' }],
    ['[]', { problem: 'is not an object' }],
    ['~', { problem: 'is not an object' }],
    ['7', { problem: 'is not an object' }],
    ['a: [', { problem: expect.stringMatching(/^is not readable as YAML at line \d+, column \d+$/) }],
    ['one: 1\ntwo: 2', { problem: 'has unknown fields (one, two)' }],
    [`${'x'.repeat(61)}: 1`, { problem: `has unknown fields (${'x'.repeat(60)})` }],
    ['{}', { value: {} }],
  ])('%j', (text, parsed) => {
    expect(parseSourceConfig(text)).toEqual(parsed)
  })

  it('has every fault in one text', () => {
    const { problem } = parseSourceConfig('resource_spec: { cpu: 0 }\nnonsense: 1') as { problem: string }
    expect(problem).toMatch(/^has a bad resource_spec\.cpu \(.+\), has unknown fields \(nonsense\)$/)
  })
})

describe('the bounds of the smoke test', () => {
  it('are 255 and 2000 characters', () => {
    expect(parseAssistant('x'.repeat(255))).toEqual({ value: 'x'.repeat(255) })
    expect(parseAssistant('a\u007f')).toEqual({ problem: 'is no name of an assistant' })
    expect(parseExpect('x'.repeat(2000))).toEqual({ value: 'x'.repeat(2000) })
  })
})
