/** Milliseconds. */
export const MINUTE = 60_000

export const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE)
