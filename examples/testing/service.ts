import { type CountersignOptions, createCountersign } from 'countersign'

/** Starts a service on a free port that keeps everything in memory and limits nothing. */
export async function startService(options: CountersignOptions = {}) {
  const service = await createCountersign({ store: 'sqlite::memory:', port: 0, rateLimit: false, ...options })
  const url = `http://localhost:${await service.listen()}`
  return { url, close: () => service.close(0) }
}
