import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { run } from './command.ts'

/** Files of a certificate and its private key. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** Makes certificates of an authority of its own, in a folder. Needs openssl. */
export class Authority {
  readonly #folder: string
  readonly #own: Certificate

  private constructor(folder: string, own: Certificate) {
    this.#folder = folder
    this.#own = own
  }

  static async create(folder: string, name: string): Promise<Authority> {
    const own = filesOf(folder, name)
    await run('openssl', ['req', '-x509', '-days', '2', '-subj', `/CN=${name}`, ...newKey(own.key), '-out', own.cert])
    return new Authority(folder, own)
  }

  /** File of the authority's own certificate. */
  get cert(): string {
    return this.#own.cert
  }

  /** Makes a certificate for a host name, for servers and for clients. With -1 days, it expired a day ago. */
  async issue(host: string, days: number = 2): Promise<Certificate> {
    const files = filesOf(this.#folder, `${host}-${Math.random().toString(36).slice(2)}`)
    const request = `${files.cert}.request`
    await run('openssl', ['req', '-subj', `/CN=${host}`, ...newKey(files.key), '-out', request])
    // Not -CAcreateserial, whose file does not bear several at a time.
    const serial = `0x${randomBytes(8).toString('hex')}`
    const signing = ['-CA', this.#own.cert, '-CAkey', this.#own.key, '-days', `${days}`, '-set_serial', serial]
    const writing = run('openssl', ['x509', '-req', '-in', request, ...signing, '-out', files.cert, '-extfile', '-'])
    writing.child.stdin?.end(`subjectAltName=DNS:${host}\n`)
    await writing
    return files
  }
}

function newKey(file: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file]
}

function filesOf(folder: string, name: string): Certificate {
  return { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
}
