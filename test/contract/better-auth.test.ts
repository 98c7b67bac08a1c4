import { betterAuthHost } from '../../src/better-auth/index.ts'
import { startAuth } from '../better-auth/support.ts'
import { startService } from '../support/service.ts'
import { appOrigin, type ContractDriver, type ContractOptions, otherOrigin } from './driver.ts'
import { credentialHeaders, restCalls } from './rest-driver.ts'
import { rpcDriver } from './rpc-driver.ts'
import { contractSuite } from './suite.ts'

const trustedOrigins = [appOrigin, otherOrigin]

/** The options that each plugin knows. */
function pluginOptions(options: ContractOptions) {
  const { nonceTtlSeconds, nonceStore, orderTtlSeconds, confirmationCode, ...both } = options
  return {
    wallet: {
      ...both,
      ...(nonceTtlSeconds === undefined ? {} : { nonceTtlSeconds }),
      ...(nonceStore === undefined ? {} : { nonceStore }),
    },
    orders: {
      ...both,
      ...(orderTtlSeconds === undefined ? {} : { orderTtlSeconds }),
      ...(confirmationCode === undefined ? {} : { confirmationCode }),
    },
  }
}

contractSuite('the Better Auth plugins', async (options = {}): Promise<ContractDriver> => {
  const { url, auth } = await startAuth({ ...pluginOptions(options), auth: { trustedOrigins } })
  return {
    ...restCalls(url),
    approvalPage: `${url}/api/auth/cross-device/claim`,
    // What the application itself asks.
    session: async (credential) =>
      (await auth.api.getSession({ headers: new Headers(credentialHeaders(credential)) }))?.session,
    async sessions(credential) {
      const sessions = await auth.api.listSessions({ headers: new Headers(credentialHeaders(credential)) })
      return sessions.map(({ id }) => id)
    },
    async signOut(credential) {
      await auth.api.signOut({ headers: new Headers(credentialHeaders(credential)) })
    },
  }
})

contractSuite('the service over Connect with Better Auth as its host', async (options = {}) => {
  const { resolveLogin, ...rest } = options
  const { auth } = await startAuth({
    wallet: resolveLogin === undefined ? {} : { resolveLogin },
    auth: { trustedOrigins },
  })
  const { url } = await startService({ appName: 'App', trustedOrigins, ...rest, sessionHost: betterAuthHost(auth) })
  return rpcDriver(url)
})
