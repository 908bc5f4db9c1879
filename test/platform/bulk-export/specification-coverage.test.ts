import { describe } from 'vitest'
import { testCoverage } from '../support/coverage-table.ts'

describe('the table of the specification about bulk export', () => {
  testCoverage({
    mark: '§ ',
    sections: ['1.5', '2.6', '2.7', '2.8', '2.9', '2.10', '3.2', '4.3', '5.2', '7.2', '7.3', '7.4', '7.5', '7.6', '8.2', '9.3'],
  })
})
