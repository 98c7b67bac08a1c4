// A process of its own that goes on with an approval: node worker.ts {options as JSON} {handle} {file} [crash]. It writes
// what it ran to the file, and prints why it did not run. With `crash`, it dies between the answer and the action.
import { appendFileSync } from 'node:fs'
import { createApprovals } from '../../../src/integrations/approvals/index.ts'

const [options = '', handle = '', file = '', crash] = process.argv.slice(2)
try {
  const decision = await (await createApprovals(JSON.parse(options)).resume(handle)).decision()
  if (decision.approved && crash !== undefined) process.kill(process.pid, 'SIGKILL')
  else if (decision.approved) appendFileSync(file, `${JSON.stringify(decision.action)}\n`)
  console.log(decision.approved ? 'ran' : decision.why)
} catch (error) {
  console.log((error as { reason?: string }).reason)
}
