import { createServer } from 'node:net'
import { listenOn } from '../../http/port/listen.ts'
import { type Check, type Finding, ok, problem } from './check.ts'
import type { Examination } from './examination.ts'
import { capitalized, messageOf } from './words.ts'

/** Whether the service can listen on its port, or does so already. */
export const portCheck: Check<Examination> = {
  name: 'port',
  needs: [],
  limitMs: 6500,
  async run(examination) {
    const { host, port, basePath } = examination.settings
    const look = await examination.lookHere()
    if (look === undefined) return [ok('the port is 0, so each start picks a free one')]
    if (look.kind === 'countersign') return [ok(`Countersign runs here, on port ${port} of ${host}`)]
    if (look.kind === 'other base path') {
      return [
        problem(
          `Countersign runs on port ${port} of ${host}, but has nothing at ${basePath}`,
          'Give doctor the settings of the running service (COUNTERSIGN_BASE_PATH), or restart the service with these.',
        ),
      ]
    }
    // Whatever listens and is no Countersign may also have said nothing.
    return [await tryToListen(port, host)]
  },
}

async function tryToListen(port: number, host: string): Promise<Finding> {
  try {
    for (const server of await listenOn({ port, host, createServer: () => createServer() })) server.close()
    return ok(`port ${port} of ${host} is free; the service does not run here`)
  } catch (error) {
    const [saw = '', fix = 'set another port or host (PORT, HOST)'] = messageOf(error).split('; ')
    return problem(saw, `${capitalized(fix)}.`)
  }
}
