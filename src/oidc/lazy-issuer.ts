import type { Issuer } from './issuer.ts'
import type { IssuerParts } from './issuer-parts.ts'

/** What ends with sessions. It ends also while a service runs without its clients file, and stays ended. */
export { sessionEnds } from './session-ends.ts'

/** Makes the issuer. The library and all that it needs are loaded here, with a clients file only. */
export async function createIssuer(parts: IssuerParts): Promise<Issuer> {
  const { createIssuer } = await import('./issuer.ts')
  return await createIssuer(parts)
}
