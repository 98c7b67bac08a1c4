import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'

/** What connections with TLS use. The files are in PEM format and are read anew for each connection. */
export interface RedisTls {
  /** File with the certificates of the authorities that servers are checked against. Default: those that Node.js knows. */
  readonly ca?: string | undefined
  /** File with the client certificate, for servers that ask for one; needs `key`. Default: none. */
  readonly cert?: string | undefined
  /** File with the private key of `cert`, without a passphrase. */
  readonly key?: string | undefined
  /** Host name that the certificates of the servers must have. Default: the host that is connected to. */
  readonly serverName?: string | undefined
}

/** The same as options of `tls.connect`. */
export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

/** How to name each file to the operator. */
const settings = {
  ca: 'redisTlsCa (COUNTERSIGN_REDIS_TLS_CA)',
  cert: 'redisTlsCert (COUNTERSIGN_REDIS_TLS_CERT)',
  key: 'redisTlsKey (COUNTERSIGN_REDIS_TLS_KEY)',
} as const

/** Whether anything is set. */
export function isTlsGiven(tls: RedisTls): boolean {
  return Object.values(tls).some((value) => value !== undefined)
}

/**
 * Reads the files.
 *
 * @throws TypeError if one cannot be read, is not what it should be, or is missing. The message is one line.
 */
export async function readTls({
  ca: caFile,
  cert: certFile,
  key: keyFile,
  serverName,
}: RedisTls): Promise<TlsMaterial> {
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new TypeError(`${settings.cert} and ${settings.key} must be set together`)
  }
  const [ca, cert, key] = await Promise.all([
    readPart('ca', caFile),
    readPart('cert', certFile),
    readPart('key', keyFile),
  ])
  if (ca !== undefined) requireCertificate('ca', caFile, ca)
  if (cert !== undefined && key !== undefined) {
    requireCertificate('cert', certFile, cert)
    requireKeyOf(cert, key, keyFile)
  }
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
  }
}

async function readPart(part: keyof typeof settings, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new TypeError(`${settings[part]} must be a file that can be read: ${problem}`, { cause })
  }
}

function requireCertificate(part: keyof typeof settings, file: string | undefined, text: string): void {
  try {
    new X509Certificate(text)
  } catch (cause) {
    throw new TypeError(`${settings[part]} must be a file with a certificate in PEM format, and ${file} is not`, {
      cause,
    })
  }
}

function requireKeyOf(cert: string, key: string, file: string | undefined): void {
  try {
    createSecureContext({ cert, key })
  } catch (cause) {
    const fit = `the private key of ${settings.cert} in PEM format, without a passphrase`
    throw new TypeError(`${settings.key} must be a file with ${fit}, and ${file} is not`, { cause })
  }
}
