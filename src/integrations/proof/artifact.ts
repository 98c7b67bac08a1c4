/**
 * A proof artifact as the clients and the REST interface give it. What a sign order's FinalizeOrder answered,
 * unchanged.
 */
export interface ProofArtifact {
  /** Hex in either case. Empty if the adapter knows wallets by their address only. */
  readonly publicKeyHex: string
  /** Hex in either case. */
  readonly signatureHex: string
  /** For a contract wallet, its CAIP-10 identifier. */
  readonly address: string
  /** The exact text that was signed. */
  readonly message: string
  readonly adapterId: string
  readonly payloadHash?: string | undefined
  readonly payload?: string | undefined
  /** Chain of the account, for adapters of your own that need it. */
  readonly chainId?: string | undefined
}

/** A proof artifact with the names of the protocol definitions, as some gRPC clients and databases have it. */
export interface ProofArtifactFields {
  readonly public_key_hex: string
  readonly signature_hex: string
  readonly address: string
  readonly message: string
  readonly adapter_id: string
  readonly payload_hash?: string | undefined
  readonly payload?: string | undefined
  readonly chain_id?: string | undefined
}

/** A field of an artifact: its name in the protocol definitions, its most characters, and what is wrong without it. */
interface Field {
  readonly name: string
  readonly maxLength: number
  readonly reason: ProofErrorReason
  /** Whether the artifact may lack it. */
  readonly optional?: true
}

const fields = {
  publicKeyHex: { name: 'public_key_hex', maxLength: 2048, reason: 'SIGNATURE_INVALID', optional: true },
  signatureHex: { name: 'signature_hex', maxLength: 32_768, reason: 'SIGNATURE_INVALID' },
  address: { name: 'address', maxLength: 300, reason: 'ADDRESS_MISMATCH' },
  message: { name: 'message', maxLength: 8192, reason: 'MESSAGE_MALFORMED' },
  adapterId: { name: 'adapter_id', maxLength: 32, reason: 'ADAPTER_UNKNOWN' },
  payloadHash: { name: 'payload_hash', maxLength: 200, reason: 'PAYLOAD_MISMATCH', optional: true },
  payload: { name: 'payload', maxLength: 8192, reason: 'PAYLOAD_MISMATCH', optional: true },
  chainId: { name: 'chain_id', maxLength: 64, reason: 'ADDRESS_MISMATCH', optional: true },
} as const satisfies Record<keyof ProofArtifact, Field>

/**
 * Reads an artifact of either spelling, of which nothing is believed. An optional field that is `null` or empty counts
 * as absent, because that is how some languages write it.
 *
 * Throws a {@link ProofError} for a field that is missing, is not text, is too long, or is there in both spellings, of
 * which another reader could take the other one.
 */
export function readArtifact(artifact: unknown): ProofArtifact {
  if (typeof artifact !== 'object' || artifact === null) {
    throw new ProofError('MESSAGE_MALFORMED', 'The artifact is not an object')
  }
  const given = artifact as Readonly<Record<string, unknown>>
  const optional = (key: keyof typeof fields): string | undefined => readField(given, key, fields[key])
  const required = (key: keyof typeof fields): string => {
    const value = optional(key)
    if (value === undefined) throw new ProofError(fields[key].reason, `The artifact has no ${fields[key].name}`)
    return value
  }
  return {
    message: required('message'),
    adapterId: required('adapterId'),
    signatureHex: required('signatureHex'),
    publicKeyHex: optional('publicKeyHex') ?? '',
    address: required('address'),
    payloadHash: optional('payloadHash'),
    payload: optional('payload'),
    chainId: optional('chainId'),
  }
}

function readField(
  given: Readonly<Record<string, unknown>>,
  key: string,
  { name, maxLength, reason }: Field,
): string | undefined {
  const values = [...new Set([key, name])].map((spelling) => given[spelling]).filter(isPresent)
  const [value] = values
  if (values.length > 1) throw new ProofError(reason, `The artifact has ${name} twice, also as ${key}`)
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw new ProofError(reason, `The artifact's ${name} is not a text`)
  if (value.length > maxLength) {
    throw new ProofError(reason, `The artifact's ${name} has more than ${maxLength} characters`)
  }
  return value
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

/**
 * Why a proof artifact is refused.
 *
 * | reason | meaning |
 * |---|---|
 * | `SIGNATURE_INVALID` | The signature is missing or malformed, or is not one of this wallet over this text. |
 * | `ADDRESS_MISMATCH` | The address is missing, or not that of the wallet that signed; or the text names another. |
 * | `MESSAGE_MALFORMED` | The text is not one of a sign order: a line is missing, stands twice or is not known. |
 * | `APP_NAME_MISMATCH`, `ORIGIN_MISMATCH` | The text is for another application or for a page of another origin. |
 * | `PAYLOAD_MISMATCH` | The text is about another payload than artifact or options say, or lacks one that fits. |
 * | `WRONG_WALLET` | The wallet that signed is not that of the owner. |
 * | `TOO_OLD` | The text was issued before `notBefore`. |
 * | `ADAPTER_UNKNOWN` | The artifact names no wallet adapter, or one that is not among `adapters`. |
 * | `CONTRACT_WALLET_NEEDS_RPC` | A contract wallet signed, and `evmRpc` has no server of its chain. |
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
