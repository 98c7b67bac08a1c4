// A process of its own that goes on with an approval: node worker.ts {options as JSON} {handle} {file} [crash]. It writes
// what it ran to the file, and prints why it did not run. With `crash`, it dies between the answer and the action. With
// the option `memory`, a folder, it remembers there what was given out.
import { appendFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createApprovals } from '../../../src/integrations/approvals/index.ts'

const [options = '', handle = '', file = '', crash] = process.argv.slice(2)
const { memory, ...others } = JSON.parse(options)

/** Makes a file of the order's id, which exactly one process can. */
async function remember(orderId: string, until: number): Promise<boolean> {
  try {
    await writeFile(join(memory, orderId), String(until), { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

try {
  const approvals = createApprovals(memory === undefined ? others : { ...others, remember })
  const decision = await (await approvals.resume(handle)).decision()
  if (decision.approved && crash !== undefined) process.kill(process.pid, 'SIGKILL')
  else if (decision.approved) appendFileSync(file, `${JSON.stringify(decision.action)}\n`)
  console.log(decision.approved ? 'ran' : decision.why)
} catch (error) {
  console.log((error as { reason?: string }).reason)
}
