import { createSessionVerifier, type Session } from 'countersign/backend'
import { headers } from 'next/headers'
import { connection } from 'next/server'
import { appUrl, countersign } from './countersign'

/** Who is signed in: the service in this process says so, without a request. */
export async function currentSession(): Promise<Session | undefined> {
  // Only known at a request: Next.js prerenders nothing from here on.
  await connection()
  const request = new Request(appUrl, { headers: await headers() })
  return createSessionVerifier({ countersign: await countersign(), cacheSeconds: 0 }).verify(request)
}
