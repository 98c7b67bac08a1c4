import type { ConnectionOptions } from 'node:tls'
import { readCertificate, readPair } from '../../base/pem.ts'
import type { PostgresTls } from './url.ts'

/** The files that connections with TLS use, read at the start and again when {@link TlsFiles.read} is called. */
export class TlsFiles {
  readonly #files: PostgresTls
  #material: ConnectionOptions = {}

  constructor(files: PostgresTls) {
    this.#files = files
  }

  /** The options of new connections. */
  get material(): ConnectionOptions {
    return { ...this.#material }
  }

  /**
   * Reads the files.
   *
   * @throws TypeError if one cannot be read or is not what it should be. The message is one line. What was read before
   * stays in use.
   */
  async read(): Promise<void> {
    const { rootCert, cert, key } = this.#files
    this.#material = {
      rejectUnauthorized: true,
      ...(rootCert !== undefined && { ca: await readCertificate(file('sslrootcert', rootCert)) }),
      ...(cert !== undefined && key !== undefined && (await readPair(file('sslcert', cert), file('sslkey', key)))),
    }
  }
}

function file(parameter: string, path: string): { setting: string; file: string } {
  return { setting: `${parameter} in COUNTERSIGN_STORE`, file: path }
}
