/**
 * Waits for something that only watches. A stop that arrives meanwhile must not cost what is already there (a tool's
 * result, the model's answer): the next step notices the stop by itself.
 */
export async function unlessStopped(watching: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await watching
  } catch (thrown) {
    if (!signal.aborted) throw thrown
  }
}
