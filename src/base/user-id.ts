/** Whether an id has the form of the service's own user ids, derived from a wallet or random. */
export function isMadeUserId(id: string): boolean {
  return /^usr_[\w-]{22}$/.test(id)
}
