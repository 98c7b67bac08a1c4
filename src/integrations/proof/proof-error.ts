/**
 * Why a proof artifact is refused.
 *
 * | reason | meaning |
 * |---|---|
 * | `SIGNATURE_INVALID` | The signature is missing or malformed, or is not one of this wallet over this text. |
 * | `ADDRESS_MISMATCH` | The address is missing or malformed, or is not that of the wallet that signed; or the text names another account. |
 * | `MESSAGE_MALFORMED` | The artifact has no text of a sign order: a line is missing, stands twice or is not known, or it is another kind of text. |
 * | `APP_NAME_MISMATCH`, `ORIGIN_MISMATCH` | The text was signed for another application, or for a page of another origin. |
 * | `PAYLOAD_MISMATCH` | The text is about another payload than the artifact or the options say. |
 * | `WRONG_WALLET` | The wallet that signed is not that of the owner. |
 * | `TOO_OLD` | The text was issued before `notBefore`. |
 * | `ADAPTER_UNKNOWN` | The artifact names no wallet adapter, or one that is not among `adapters`. |
 * | `CONTRACT_WALLET_NEEDS_RPC` | The signature is that of a contract wallet, and `evmRpc` has no server of its chain. |
 * | `EVM_RPC_UNAVAILABLE` | That server did not answer, which says nothing about the signature; try again. |
 */
export type ProofErrorReason =
  | 'SIGNATURE_INVALID'
  | 'ADDRESS_MISMATCH'
  | 'MESSAGE_MALFORMED'
  | 'APP_NAME_MISMATCH'
  | 'ORIGIN_MISMATCH'
  | 'PAYLOAD_MISMATCH'
  | 'WRONG_WALLET'
  | 'TOO_OLD'
  | 'ADAPTER_UNKNOWN'
  | 'CONTRACT_WALLET_NEEDS_RPC'
  | 'EVM_RPC_UNAVAILABLE'

/** The refusal of a proof artifact: a stable reason to act on, and a message of one line for people. */
export class ProofError extends Error {
  override readonly name = 'ProofError'
  readonly reason: ProofErrorReason

  constructor(reason: ProofErrorReason, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
  }
}
