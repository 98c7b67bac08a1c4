import { createLogger, logOutput } from '../../src/base/log.ts'

/**
 * Logs 500 lines in one turn of the event loop, some of them in what that turn sets off, and ends as the argument says.
 */

const [end] = process.argv.slice(2)
let writes = 0
if (end === 'count') {
  process.stderr.write = () => {
    writes++
    return true
  }
}
const logger = createLogger(logOutput(), 'info', 'json')

// In a turn of its own: while a module is loaded, ticks do not run as they do later.
setImmediate(async () => {
  for (let i = 0; i < 250; i++) logger.info(`line ${i}`)
  for (let i = 250; i < 500; i++) {
    await null
    logger.info(`line ${i}`)
  }
  if (end === 'exit') process.exit(1)
  if (end === 'throw')
    queueMicrotask(() => {
      throw new Error('nobody catches this')
    })
  if (end === 'reject') throw new Error('nobody catches this')
  if (end === 'kill in a later turn') setImmediate(() => process.kill(process.pid, 'SIGKILL'))
  if (end === 'count') setImmediate(() => process.stdout.write(String(writes)))
})
