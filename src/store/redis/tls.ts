import { type PemFile, readCertificate, readPair } from '../../base/pem.ts'

/** What connections with TLS use. The files are in PEM format and are read anew for each connection. */
export interface RedisTls {
  /**
   * File with the certificates of the authorities that servers are checked against. Default: those that Node.js knows.
   */
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
  ca: 'redis.tlsCa (COUNTERSIGN_REDIS_TLS_CA)',
  cert: 'redis.tlsCert (COUNTERSIGN_REDIS_TLS_CERT)',
  key: 'redis.tlsKey (COUNTERSIGN_REDIS_TLS_KEY)',
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
export async function readTls({ ca, cert, key, serverName }: RedisTls): Promise<TlsMaterial> {
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError(`${settings.cert} and ${settings.key} must be set together`)
  }
  return {
    ...(ca !== undefined && { ca: await readCertificate(pemFile('ca', ca)) }),
    ...(cert !== undefined && key !== undefined && (await readPair(pemFile('cert', cert), pemFile('key', key)))),
    ...(serverName !== undefined && { servername: serverName }),
  }
}

/** The file that a setting names. */
function pemFile(part: keyof typeof settings, file: string): PemFile {
  return { setting: settings[part], file }
}
