/** The platform's time. `scale` divides every wait of the service itself (option `--time-scale`); limits of requests are not scaled. */
export interface Clock {
  now(): Date
  /** A wait of the service, in milliseconds of real time. */
  scaled(milliseconds: number): number
}

export function createClock(scale: number): Clock {
  return {
    now: () => new Date(),
    scaled: (milliseconds) => Math.max(1, Math.round(milliseconds / scale)),
  }
}
