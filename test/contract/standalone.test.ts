import { startService } from '../support/service.ts'
import { appOrigin, type ContractDriver, otherOrigin } from './driver.ts'
import { credentialHeaders, restCalls } from './rest-driver.ts'
import { contractSuite } from './suite.ts'

// Over Connect, the contract is held against the service with Better Auth as its host: better-auth.test.ts.
contractSuite('the standalone service over REST', async (options = {}): Promise<ContractDriver> => {
  const { url } = await startService({ appName: 'App', trustedOrigins: [appOrigin, otherOrigin], ...options })
  const get = async (path: string, headers: Record<string, string>) => {
    const response = await fetch(`${url}/api/auth${path}`, { headers })
    return response.ok ? await response.json() : undefined
  }
  return {
    ...restCalls(url),
    approvalPage: `${url}/c`,
    session: async (credential) => (await get('/session', credentialHeaders(credential)))?.session,
    sessions: async (credential) =>
      (await get('/sessions', credentialHeaders(credential))).sessions.map(({ id }: { id: string }) => id),
    async signOut(credential) {
      await fetch(`${url}/api/auth/sign-out`, { method: 'POST', headers: credentialHeaders(credential) })
    },
  }
})
