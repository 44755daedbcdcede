/** Aborts at the first SIGINT or SIGTERM; a second one ends the process. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(process.exitCode ?? 0)
    controller.abort(new Error('stopped'))
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return controller.signal
}
