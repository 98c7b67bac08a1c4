import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { type ProofArtifact, ProofError, type ProofOptions, verifyProofArtifact } from '../integrations/proof/index.ts'
import { given } from '../shared/defined-fields.ts'
import { type Arguments, oneLine, readArguments, type Streams, UsageError, usageHint } from './command-line.ts'

const helpText = `Usage: countersign verify FILE --app-name NAME --origin ORIGIN [options]

Verifies a proof artifact without asking the service. FILE has the artifact, or the whole answer of
FinalizeOrder, as JSON; "-" is standard input. The exit code is 0 if the proof holds, 1 if it does
not or cannot be checked, and 2 for wrong usage.

  --app-name NAME          the service's COUNTERSIGN_APP_NAME
  --origin ORIGIN          origin of the page that starts the orders, such as https://app.example
  --payload-hash HASH      hash that the order was started with
  --payload FILE           JSON that the order was started with
  --payload-line optional  accepts a text that lacks the payload, of which its signer saw the hash only
  --adapter ID             wallet adapter that it must be a proof of; default: any built-in one
  --owner-address ADDRESS  address of the wallet that must have signed; needs --adapter
  --owner-key HEX          public key of the wallet that must have signed; needs --adapter
  --not-before TIME        earliest time of issue: 2026-01-01, 2026-01-01T00:00:00Z, or epoch milliseconds
  --evm-rpc CHAIN=URL      JSON-RPC server for contract wallets of a chain, such as 1=https://rpc.example;
                           can be repeated
  --json                   prints what was proven, or why it is refused, as JSON
  --help                   shows this text
`

const options = {
  'app-name': { type: 'string' },
  origin: { type: 'string' },
  'payload-hash': { type: 'string' },
  payload: { type: 'string' },
  'payload-line': { type: 'string' },
  adapter: { type: 'string' },
  'owner-address': { type: 'string' },
  'owner-key': { type: 'string' },
  'not-before': { type: 'string' },
  'evm-rpc': { type: 'string', multiple: true },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

type Values = Arguments<typeof options>['values']

/** Most bytes of a file that is read. */
const maxBytes = 256 * 1024

/**
 * Runs the command `verify` with the arguments behind its name. Resolves with the exit code: 0 for a proof that holds,
 * 1 for one that does not, 2 for arguments that are wrong and files that cannot be read.
 */
export async function verifyCommand(args: readonly string[], { stdin, stdout, stderr }: Streams): Promise<number> {
  try {
    const { values, words } = readArguments(args, options)
    if (values.help) {
      stdout.write(helpText)
      return 0
    }
    const [file] = words
    if (file === undefined || words.length > 1) throw new UsageError('it takes one FILE')
    const expected = await optionsOf(values, stdin)
    const artifact = await readText(file, stdin)
    return await judge(artifact, expected, values.json === true, { stdout, stderr })
  } catch (error) {
    // A TypeError is one about the options.
    if (!(error instanceof UsageError || error instanceof TypeError)) throw error
    stderr.write(`countersign verify: ${oneLine(error)}${usageHint}\n`)
    return 2
  }
}

async function judge(
  artifact: string,
  expected: ProofOptions,
  json: boolean,
  { stdout, stderr }: Omit<Streams, 'stdin'>,
): Promise<number> {
  try {
    const proof = await verifyProofArtifact(parseArtifact(artifact), expected)
    const { adapterId, address, orderId, issuedAt, payloadHash } = proof
    const what = payloadHash === undefined ? '' : ` about ${payloadHash}`
    const time = new Date(issuedAt).toISOString()
    const line = `valid: ${address} (${adapterId}) signed order ${orderId}${what}, issued at ${time}`
    stdout.write(`${json ? JSON.stringify({ valid: true, ...proof }) : line}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ProofError)) throw error
    const { reason, message } = error
    if (json) stdout.write(`${JSON.stringify({ valid: false, reason, message })}\n`)
    else stderr.write(`${reason}: ${oneLine(error)}\n`)
    return 1
  }
}

/** What the artifact has to agree with. */
async function optionsOf(values: Values, stdin: Readable): Promise<ProofOptions> {
  const adapterId = values.adapter
  const [address, publicKeyHex] = [values['owner-address'], values['owner-key']]
  const hasOwner = address !== undefined || publicKeyHex !== undefined
  if (hasOwner && adapterId === undefined) throw new UsageError('--owner-address and --owner-key need --adapter')
  const { 'payload-hash': payloadHash, 'not-before': notBefore, 'evm-rpc': evmRpc } = values
  const payload = values.payload === undefined ? undefined : await readText(values.payload, stdin)
  return {
    appName: required(values, 'app-name'),
    origin: required(values, 'origin'),
    ...given({
      payloadHash,
      payload,
      payloadLine: payloadLineOf(values['payload-line']),
      notBefore: notBefore === undefined ? undefined : timeOf(notBefore),
      evmRpc: evmRpc && rpcsOf(evmRpc),
      adapters: adapterId === undefined ? undefined : [adapterId],
      owner: adapterId !== undefined && hasOwner ? { adapterId, ...given({ address, publicKeyHex }) } : undefined,
    }),
  }
}

function required(values: Values, name: 'app-name' | 'origin'): string {
  const value = values[name]
  if (value === undefined) throw new UsageError(`--${name} is needed`)
  return value
}

function payloadLineOf(value: string | undefined): ProofOptions['payloadLine'] | undefined {
  if (value === undefined || value === 'required' || value === 'optional') return value
  throw new UsageError('--payload-line must be required or optional')
}

const timeForm = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

function timeOf(text: string): number {
  const time = /^\d{1,15}$/.test(text) ? Number(text) : timeForm.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) throw new UsageError('--not-before must be a time such as 2026-01-01T00:00:00Z')
  return time
}

function rpcsOf(entries: readonly string[]): Record<string, string> {
  const pairs = entries.map((entry) => /^(\d+)=(.+)$/.exec(entry)?.slice(1) ?? [])
  // Not repeated: an address can contain a key.
  if (pairs.some(({ length }) => length === 0)) throw new UsageError('--evm-rpc must be CHAIN=URL')
  const rpcs: Record<string, string> = Object.fromEntries(pairs)
  if (Object.keys(rpcs).length < pairs.length) throw new UsageError('--evm-rpc has a chain twice')
  return rpcs
}

/** The artifact in a text: the whole of it, or a member, as FinalizeOrder answers. Nothing in it is believed yet. */
function parseArtifact(text: string): ProofArtifact {
  try {
    const parsed = JSON.parse(text)
    return parsed?.proofArtifact ?? parsed?.proof_artifact ?? parsed
  } catch (cause) {
    throw new ProofError('MESSAGE_MALFORMED', 'The artifact is not JSON', { cause })
  }
}

async function readText(file: string, stdin: Readable): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
      length += chunk.length
      if (length > maxBytes) break
      chunks.push(chunk)
    }
  } catch (cause) {
    throw new UsageError(`cannot read ${JSON.stringify(file)}: ${(cause as NodeJS.ErrnoException).code}`, { cause })
  }
  if (length > maxBytes) throw new UsageError(`${JSON.stringify(file)} has more than ${maxBytes} bytes`)
  // Drops the byte order mark that some editors put first.
  return new TextDecoder().decode(Buffer.concat(chunks))
}
