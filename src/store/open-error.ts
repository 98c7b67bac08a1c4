/** The store cannot be opened. The message is one line for the operator: what is wrong and what to change. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError'
}
