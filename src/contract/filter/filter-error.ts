/** A filter that cannot be used, and the character of the text where that shows (counted from 0). */
export class FilterError extends Error {
  readonly position: number

  constructor(message: string, position: number) {
    super(`${message} (at character ${position + 1})`)
    this.position = position
  }
}
