/** How much of a refused body is read and thrown away. */
const DRAIN_BYTES_MAX = 8 * 1024 * 1024

/**
 * Reads what is left of a body that was refused, so that its connection serves the sender's next request; a sender with far more to send
 * is cut off.
 */
export async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    for (let drained = 0; drained <= DRAIN_BYTES_MAX; ) {
      const { done, value } = await reader.read()
      if (done) return
      drained += value.length
    }
  } catch {
    // The sender has gone.
  }
  reader.cancel().catch(() => {})
}
