/** The program of a worker. */

// A terminal and a service manager send signals to all processes of the service. Workers do as the one says that
// started them: it alone knows whether all stop, or one after the other. Everything else is loaded after that, because
// loading takes time.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
const { runWorker } = await import('./worker.ts')
runWorker()

export {}
