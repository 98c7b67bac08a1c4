import { constants, X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import type { Logger } from '../../base/log.ts'
import { type KeyPair, type PemFile, readPair } from '../../base/pem.ts'

/** The first byte of every TLS connection and of no HTTP request: the record type of a handshake (RFC 8446, 5.1). */
export const tlsStart = 0x16

/**
 * Cipher suites: authenticated encryption with forward secrecy only (RFC 9325, 4.2). HTTP/2 clients may refuse all
 * others of TLS 1.2 (RFC 9113, 9.2.2 and appendix A).
 */
const ciphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/**
 * At least TLS 1.2 and the suites above, also against NODE_OPTIONS. Renegotiation is off: it costs the server more than
 * the client, and clients need none.
 */
const rules = { minVersion: 'TLSv1.2', ciphers, secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const

/** Does TLS handshakes on accepted connections. HTTP/2 and HTTP/1.1 are offered by ALPN, in this order. */
export class Handshakes {
  /** Never listens: accepted connections are handed to it. */
  readonly #server: Server
  /** Callback of each connection in its handshake, by its two ends. */
  readonly #waiting = new Map<string, (secured: TLSSocket) => void>()

  constructor(pair: KeyPair) {
    this.#server = createServer({ ...pair, ...rules, ALPNProtocols: ['h2', 'http/1.1'] })
    this.#server.on('secureConnection', (secured) => {
      const done = this.#waiting.get(endsOf(secured))
      // The client has left.
      if (done === undefined) secured.destroy()
      else done(secured)
    })
    // Other bytes than a handshake get no answer.
    this.#server.on('tlsClientError', (_, secured) => secured.destroy())
  }

  /** Uses another pair for new connections. */
  replace(pair: KeyPair): void {
    this.#server.setSecureContext({ ...pair, ...rules })
  }

  /**
   * Begins the handshake of a connection; bytes that were read from it must be put back. A failed handshake closes the
   * connection. There is no time limit here.
   */
  begin(socket: Socket, done: (secured: TLSSocket) => void): void {
    const ends = endsOf(socket)
    this.#waiting.set(ends, done)
    socket.once('close', () => this.#waiting.delete(ends))
    this.#server.emit('connection', socket)
  }
}

/** Unique among live connections. The server's event names the TLS connection only, without the accepted one. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return [remoteAddress, remotePort, localAddress, localPort].join(' ')
}

/** Interval of the checks of the files, in ms. */
const pollMs = 10_000

/** Files of the port's certificate and key. */
export interface KeyFilesParts {
  readonly cert: PemFile
  readonly key: PemFile
  /** Has a line for each new pair, and for a pair that does not fit or is out of its time. */
  readonly log: Logger
}

/**
 * The files of the port's certificate and key. They are read at intervals, because no event covers all ways of
 * replacing them: renaming, writing in place, or switching a link to their folder, as Kubernetes does.
 */
export class KeyFiles {
  readonly #parts: KeyFilesParts
  #pair: KeyPair
  #onReplaced: (pair: KeyPair) => void = () => {}
  #poll: NodeJS.Timeout | undefined
  /** Each check waits for the previous one, so that none takes an older pair for a newer one. */
  #looking: Promise<unknown> = Promise.resolve()
  /** The problem of the last check, and whether it is logged. */
  #problem: { readonly cause: string; readonly logged: boolean } | undefined

  private constructor(parts: KeyFilesParts, pair: KeyPair) {
    this.#parts = parts
    this.#pair = pair
  }

  /** Reads the files. Rejects with a `TypeError` of one line if they do not fit. */
  static async open(parts: KeyFilesParts): Promise<KeyFiles> {
    const files = new KeyFiles(parts, await readPair(parts.cert, parts.key))
    files.#warnOfTime()
    return files
  }

  /** The pair in use. */
  get pair(): KeyPair {
    return this.#pair
  }

  /** Calls `onReplaced` with each new pair, and checks for one every `everyMs` ms. */
  watch(onReplaced: (pair: KeyPair) => void, everyMs: number = pollMs): void {
    this.#onReplaced = onReplaced
    this.#poll ??= setInterval(() => void this.#look(), everyMs).unref()
  }

  /** Ends the checks. */
  stop(): void {
    clearInterval(this.#poll)
  }

  /**
   * Reads the files now. Resolves with whether they have a new pair. Rejects with a `TypeError` of one line if they do
   * not fit; the previous pair stays in use.
   */
  reload(): Promise<boolean> {
    const reloaded = this.#looking.then(() => this.#reload())
    this.#looking = reloaded.catch(() => {})
    return reloaded
  }

  async #reload(): Promise<boolean> {
    const pair = await readPair(this.#parts.cert, this.#parts.key)
    this.#problem = undefined
    if (pair.cert === this.#pair.cert && pair.key === this.#pair.key) return false
    this.#pair = pair
    this.#onReplaced(pair)
    const { subject, validTo } = new X509Certificate(pair.cert)
    this.#parts.log.info('new TLS certificate in use', { subject: subject.replaceAll('\n', ', '), validTo })
    this.#warnOfTime()
    return true
  }

  async #look(): Promise<void> {
    try {
      await this.reload()
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      // Files are replaced one after the other: a problem is logged at its second check, once.
      const isSecond = this.#problem?.cause === cause
      if (isSecond && this.#problem?.logged !== true) {
        this.#parts.log.error('TLS certificate not replaced: the one before stays in use', { cause })
      }
      this.#problem = { cause, logged: isSecond }
    }
  }

  /**
   * Only a warning: clients refuse such a certificate, but a service that does not start serves none of them, even
   * after its renewal.
   */
  #warnOfTime(): void {
    const { cert, log } = this.#parts
    const { validFromDate, validToDate } = new X509Certificate(this.#pair.cert)
    const now = Date.now()
    if (validToDate.getTime() < now) {
      log.warn(`the certificate of ${cert.setting} expired at ${validToDate.toISOString()}; renew it`)
    } else if (validFromDate.getTime() > now) {
      log.warn(`the certificate of ${cert.setting} is not valid before ${validFromDate.toISOString()}`)
    }
  }
}
