import { ActionFailure, ERROR_CODES } from '../../../src/action/report/error-codes.ts'

/** The failure that this ends in; anything else fails the test. */
export async function actionFailureOf(ended: Promise<unknown>): Promise<ActionFailure> {
  const error: unknown = await ended.then(
    (value) => new Error(`expected a failure, got ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  )
  if (!(error instanceof ActionFailure)) throw error
  return error
}

/** What a person reads of the failure that this ends in; `next` only where it is not the usual remedy of the code. */
export async function caught(ended: Promise<unknown>): Promise<Record<string, string | undefined>> {
  const { code, message, tried, next } = await actionFailureOf(ended)
  return {
    code,
    message,
    ...(tried === undefined ? {} : { tried }),
    ...(next === ERROR_CODES[code].remedy ? {} : { next }),
  }
}
