import type { ConnectionOptions } from 'node:tls'
import { type PemFile, readCertificate, readPair } from '../../base/pem.ts'
import type { PostgresTarget } from './url.ts'

/** A server, and the options of TLS for new connections to it; false is without TLS. */
interface TlsAccess {
  readonly target: PostgresTarget
  ssl: ConnectionOptions | false
}

/**
 * Reads the files that new connections with TLS use.
 *
 * @throws TypeError if one cannot be read or is not what it should be. The message is one line. What was read before
 * stays in use.
 */
export async function readTls(access: TlsAccess): Promise<void> {
  const { tls } = access.target
  if (tls === undefined) return
  const { rootCert, cert, key } = tls
  access.ssl = {
    rejectUnauthorized: true,
    ...(rootCert !== undefined && { ca: await readCertificate(file('sslrootcert', rootCert)) }),
    ...(cert !== undefined && key !== undefined && (await readPair(file('sslcert', cert), file('sslkey', key)))),
  }
}

function file(parameter: string, path: string): PemFile {
  return { setting: `${parameter} in COUNTERSIGN_STORE`, file: path }
}
