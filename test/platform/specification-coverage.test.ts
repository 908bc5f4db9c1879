import { describe } from 'vitest'
import { testCoverage } from './support/coverage-table.ts'

describe('the table of the specification', () => {
  testCoverage({
    mark: '',
    sections: [
      '1.1',
      '1.2',
      '1.3',
      '1.5',
      '2.1',
      '2.2',
      '2.3',
      '2.4',
      '2.5',
      '3.1',
      '4',
      '4.1',
      '5.1',
      '5.2',
      '5.5',
      '7.1',
      '8.1',
      '9.1',
    ],
  })
})
