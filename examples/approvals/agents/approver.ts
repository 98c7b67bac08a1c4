/** Who approves, and at which service: from the environment of the program, which the agent does not set. */
import { createApprovals } from '../../../src/integrations/approvals/index.ts'

function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}

export const user = {
  userId: setting('USER_ID'),
  wallets: [{ adapterId: setting('ADAPTER_ID'), address: setting('ADDRESS') }],
}

export const approvals = createApprovals({
  url: setting('SIGN_URL'),
  startKey: setting('START_KEY'),
  appName: setting('APP_NAME'),
  origin: setting('ORIGIN'),
})
