/** Whether a user's id has the form of those that the service makes, from a wallet or at random. */
export function isMadeUserId(id: string): boolean {
  return /^usr_[\w-]{22}$/.test(id)
}
