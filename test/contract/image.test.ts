import { describe, expect, it } from 'vitest'
import { fullRepository, isImageOf, parseImageName, registryOf } from '../../src/contract/image.ts'

const A = `sha256:${'a'.repeat(64)}`
const B = `sha256:${'b'.repeat(64)}`

describe('an image reference', () => {
  it.each([
    ['redis', { repository: 'redis', tag: null, digest: null }],
    ['team/agent:1.2', { repository: 'team/agent', tag: '1.2', digest: null }],
    ['localhost:5000/agent', { repository: 'localhost:5000/agent', tag: null, digest: null }],
    ['registry.example.com:5000/team/agent:1', { repository: 'registry.example.com:5000/team/agent', tag: '1', digest: null }],
    [`agent@${A}`, { repository: 'agent', tag: null, digest: A }],
    [`127.0.0.1:5000/agent:1@${A}`, { repository: '127.0.0.1:5000/agent', tag: '1', digest: A }],
  ])('%s has its parts', (uri, parts) => {
    expect(parseImageName(uri)).toEqual(parts)
  })

  it.each([
    ['redis', 'docker.io', 'docker.io/library/redis'],
    ['team/agent', 'docker.io', 'docker.io/team/agent'],
    ['docker.io/team/agent', 'docker.io', 'docker.io/team/agent'],
    ['index.docker.io/redis', 'docker.io', 'docker.io/library/redis'],
    ['localhost/agent', 'localhost', 'localhost/agent'],
    ['registry.example.com/agent', 'registry.example.com', 'registry.example.com/agent'],
    ['host:5000/agent', 'host:5000', 'host:5000/agent'],
    ['localhost', 'docker.io', 'docker.io/library/localhost'],
    ['my.agent', 'docker.io', 'docker.io/library/my.agent'],
    ['team/docker.io/agent', 'docker.io', 'docker.io/team/docker.io/agent'],
  ])('%s lies in %s as %s', (repository, registry, full) => {
    expect([registryOf(repository), fullRepository(repository)]).toEqual([registry, full])
  })
})

describe('a recorded image', () => {
  it.each([
    [`agent:1@${A}`, 'agent:1'],
    [`agent@${A}`, 'agent'],
    [`agent@${A}`, 'agent:latest'],
    [`agent:1@${A}`, `agent@${A}`],
    [`agent@${A}`, `docker.io/library/agent:2@${A}`],
    ['agent:1', 'agent:1'],
  ])('%s is what %s asked for', (recorded, wanted) => {
    expect(isImageOf(recorded, wanted)).toBe(true)
  })

  it.each([
    [`agent:1@${A}`, 'agent:2'],
    [`agent:1@${A}`, 'agent'],
    [`agent:1@${A}`, `agent:1@${B}`],
    [`agent:1@${A}`, `other:1@${A}`],
    ['agent:1', `agent:1@${A}`],
    ['agent:1', 'agent:2'],
    // Without a digest only the same words are known to mean the same image.
    ['agent', 'agent:latest'],
  ])('%s is not what %s asked for', (recorded, wanted) => {
    expect(isImageOf(recorded, wanted)).toBe(false)
  })
})
