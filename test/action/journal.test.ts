import { describe, expect, it } from 'vitest'
import { createJournal } from '../../src/action/journal.ts'

function scene(saves = true) {
  const [set, saved]: [string[][], string[][]] = [[], []]
  const io = {
    setOutput: (name: string, value: string) => {
      set.push([name, value])
    },
    saveState: (key: string, value: string) => {
      saved.push([key, value])
      return saves
    },
  }
  return { set, saved, journal: createJournal({ io, startedAt: 7 }) }
}

describe('the journal', () => {
  it('knows nothing at first, but when the step began', () => {
    const { journal } = scene()
    const { startedAt, transitions, notes, plan, logTail, smokeTest, sweep, rollback } = journal
    expect({ startedAt, transitions, notes, plan, logTail, smokeTest, sweep, rollback, export: journal.export }).toEqual({
      startedAt: 7,
      transitions: [],
      notes: [],
    })
    expect([journal.output('deployment-id'), journal.rateLimitWaitMs()]).toEqual([undefined, 0])
  })

  it('hands an output to the runner when it is known and new', () => {
    const { journal, set } = scene()
    const values = ['a', 'a', null, undefined, '', 'b', 'a']
    for (const value of values) journal.set('revision-id', value)
    journal.set('deployment-id', 'a')
    expect(set).toEqual([
      ['revision-id', 'a'],
      ['revision-id', 'b'],
      ['revision-id', 'a'],
      ['deployment-id', 'a'],
    ])
    expect([journal.output('revision-id'), journal.output('deployment-id')]).toEqual(['a', 'a'])
  })

  it.each([true, false])('leaves everything for post, empty values as well; the file can be written: %s', (saves) => {
    const { journal, saved } = scene(saves)
    journal.save('pending', 'x')
    journal.save('pending', '')
    expect(saved).toEqual([
      ['pending', 'x'],
      ['pending', ''],
    ])
  })

  it('keeps each change of the status once, and one that comes back again', () => {
    const { journal } = scene()
    const told = ['QUEUED', 'BUILDING', 'BUILDING', 'QUEUED']
    for (const [at, status] of told.entries()) journal.transition(status, at)
    expect(journal.transitions).toEqual([
      { status: 'QUEUED', at: 0 },
      { status: 'BUILDING', at: 1 },
      { status: 'QUEUED', at: 3 },
    ])
  })

  it('keeps each sentence once, in its order', () => {
    const { journal } = scene()
    for (const sentence of ['b', 'a', 'b']) journal.note(sentence)
    expect(journal.notes).toEqual(['b', 'a'])
  })

  it('adds up the waits that were asked for', () => {
    const { journal } = scene()
    for (const milliseconds of [1500, 500]) journal.addRateLimitWait(milliseconds)
    expect(journal.rateLimitWaitMs()).toBe(2000)
  })

  it('keeps the last of each report', () => {
    const { journal } = scene()
    const plan = [{ field: 'repo_ref', live: 'a', wanted: 'b' }]
    const tail = { title: 'The end of the build log', lines: ['x'] }
    journal.setPlan([])
    journal.setPlan(plan)
    journal.setLogTail(tail)
    journal.setSweep([])
    expect([journal.plan, journal.logTail, journal.sweep]).toEqual([plan, tail, []])
  })
})
