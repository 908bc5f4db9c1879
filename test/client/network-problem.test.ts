import { describe, expect, it } from 'vitest'
import { happenedBeforeSending, isCertificateProblem, isPlainHttp, problemOf } from '../../src/client/network-problem.ts'

const problem = (message: string, fields: object = {}) => Object.assign(new Error(message), fields)
const refused = problem('connect ECONNREFUSED ::1:1', { code: 'ECONNREFUSED', syscall: 'connect' })
const timedOut = problem('connect ETIMEDOUT 127.0.0.1:1', { code: 'ETIMEDOUT', syscall: 'connect' })
const reset = problem('read ECONNRESET', { code: 'ECONNRESET', syscall: 'read' })

describe('happenedBeforeSending', () => {
  it.each([
    [refused, true],
    [timedOut, true],
    [problem('getaddrinfo EAI_AGAIN x', { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }), true],
    [problem('wrong version number', { code: 'EPROTO', syscall: 'write' }), true],
    [problem('alert', { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' }), true],
    [problem('certificate has expired', { code: 'CERT_HAS_EXPIRED' }), true],
    [problem('tunneling socket could not be established, cause=x', { code: 'ECONNRESET' }), true],
    [problem('Client network socket disconnected before secure TLS connection was established', { code: 'ECONNRESET' }), true],
    [new AggregateError([refused, timedOut]), true],
    [reset, false],
    [problem('socket hang up', { code: 'ECONNRESET' }), false],
    [problem('write EPIPE', { code: 'EPIPE', syscall: 'write' }), false],
    [new AggregateError([refused, reset]), false],
    [problem('no code at all'), false],
    ['a text', false],
  ])('%s: %s', (error, expected) => {
    expect(happenedBeforeSending(error)).toBe(expected)
  })
})

describe('problemOf', () => {
  it('has the words of every address that was tried', () => {
    const both = new AggregateError([refused, timedOut])
    expect(problemOf(both)).toEqual({
      code: 'ECONNREFUSED',
      reason: 'connect ECONNREFUSED ::1:1, connect ETIMEDOUT 127.0.0.1:1',
    })
    expect(problemOf(Object.assign(both, { code: 'ETIMEDOUT' })).code).toBe('ETIMEDOUT')
    expect(problemOf(new AggregateError([]))).toEqual({ code: null, reason: '' })
  })

  it('takes anything', () => {
    expect(problemOf('a text')).toEqual({ code: null, reason: 'a text' })
    expect(problemOf(undefined)).toEqual({ code: null, reason: 'undefined' })
    expect(problemOf(problem('x', { code: 5 }))).toEqual({ code: null, reason: 'x' })
  })
})

describe('isPlainHttp', () => {
  it.each([
    ['write EPROTO 40B7:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:', true],
    ['write EPROTO 40B7:error:0A000410:SSL routines::sslv3 alert handshake failure', false],
    [null, false],
  ])('%s: %s', (words, expected) => {
    expect(isPlainHttp(words)).toBe(expected)
  })
})

describe('isCertificateProblem', () => {
  it.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', true],
    ['ERR_TLS_CERT_ALTNAME_INVALID', true],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', true],
    ['ECONNREFUSED', false],
    [null, false],
  ])('%s: %s', (code, expected) => {
    expect(isCertificateProblem(code)).toBe(expected)
  })
})
