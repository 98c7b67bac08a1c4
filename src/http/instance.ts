import http, { type IncomingHttpHeaders, type RequestOptions } from 'node:http'
import https from 'node:https'
import { type Keyring, randomText } from '../base/token.ts'
import { errorCode, ListenError } from './port/listen.ts'

/** Header of a challenge in a request to `/readyz`, and of the proof in its answer. */
export const instanceHeader = 'countersign-instance'

/** 32 random bytes in base64url. */
const challengeBytes = 32
const challengeForm = /^[A-Za-z0-9_-]{43}$/

/** Time for one answer, in ms. */
const answerMs = 5_000

/** Most tries if connections are reset, as by an instance that stops at that moment. */
const maxTries = 3

/** A port to share. */
export interface SharedPort {
  readonly port: number
  readonly host: string
  readonly tls: boolean
}

/**
 * An instance of a service among those that share a port. The kernel spreads connections over all listeners of a port,
 * so each instance proves to the next that both have the same secret and the same store.
 */
export class Instance {
  readonly #keyring: Keyring
  readonly #storeId: string

  constructor(keyring: Keyring, storeId: string) {
    this.#keyring = keyring
    this.#storeId = storeId
  }

  /** The proof for a challenge; `undefined` without one, or for a malformed one. */
  proofFor(challenge: unknown): string | undefined {
    if (typeof challenge !== 'string' || !challengeForm.test(challenge)) return undefined
    return this.#keyring.sign('instance', this.#signed(challenge))
  }

  /**
   * Checks that a port is free, or shared by instances of this service.
   *
   * @throws ListenError if anything else listens there.
   */
  async requireOwn(shared: SharedPort): Promise<void> {
    for (const address of reachedAt(shared.host)) await this.#requireOwn({ ...shared, address })
  }

  async #requireOwn({ port, host, tls, address }: SharedPort & { readonly address: string }): Promise<void> {
    const challenge = randomText(challengeBytes)
    const inUse = `port ${port} on ${host} is in use by`
    const advice = 'Stop it, or set another port (PORT).'
    const headers = await ask({ host: address, port, tls, challenge }).catch((cause: unknown) => {
      throw new ListenError(`${inUse} a program that gives no answer (${reasonOf(cause)})`, { advice, cause })
    })
    if (headers === undefined) return
    const proof = headers[instanceHeader]
    if (typeof proof !== 'string') {
      throw new ListenError(`${inUse} another program, or by an instance without reusePort`, { advice })
    }
    if (this.#keyring.verify('instance', this.#signed(challenge), proof)) return
    throw new ListenError(`${inUse} an instance with another secret or another store`, {
      advice:
        'Give all instances the same COUNTERSIGN_SECRET, COUNTERSIGN_STORE and COUNTERSIGN_KEY_PREFIX, or set ' +
        'another port (PORT).',
    })
  }

  #signed(challenge: string): string {
    return `${challenge}.${this.#storeId}`
  }
}

/** Addresses of this machine at which a listener on `host` can be reached. */
function reachedAt(host: string): readonly string[] {
  if (host === '0.0.0.0') return ['127.0.0.1']
  return host === 'localhost' || host === '::' ? ['127.0.0.1', '::1'] : [host]
}

interface Question extends SharedPort {
  readonly challenge: string
}

/** Headers of the answer to a challenge; `undefined` if nothing listens. Rejects without an answer of HTTP. */
async function ask(question: Question): Promise<IncomingHttpHeaders | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return await askOnce(question)
    } catch (error) {
      const code = errorCode(error) ?? ''
      // Listening then says what is wrong with the host, if anything is.
      if (/^(ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT|ENETUNREACH|ENOTFOUND)$/.test(code)) return undefined
      if (code !== 'ECONNRESET' || tries === maxTries) throw error
    }
  }
}

function askOnce({ tls, challenge, ...place }: Question): Promise<IncomingHttpHeaders> {
  const options: RequestOptions = {
    ...place,
    path: '/readyz',
    headers: { [instanceHeader]: challenge },
    agent: false,
    signal: AbortSignal.timeout(answerMs),
  }
  return new Promise((resolve, reject) => {
    // The certificate is for the public address. The proof says which program it is.
    const sent = tls ? https.request({ ...options, rejectUnauthorized: false }) : http.request(options)
    sent.on('response', (response) => {
      resolve(response.headers)
      response.destroy()
    })
    sent.on('error', reject)
    sent.end()
  })
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && /^(AbortError|TimeoutError)$/.test(error.name)) return `${answerMs / 1000} s`
  return errorCode(error) ?? String(error)
}
