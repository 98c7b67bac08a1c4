import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'

/** A file in PEM format, and the setting that names it, as messages call it: `tls.cert (COUNTERSIGN_TLS_CERT)`. */
export interface PemFile {
  readonly setting: string
  readonly file: string
}

/** A certificate with those that lead to its authority, and its private key, both in PEM format. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
}

/** Reads a file of certificates. Throws a `TypeError` of one line if that fails or the file has no certificate. */
export async function readCertificate(cert: PemFile): Promise<string> {
  const text = await readText(cert)
  try {
    new X509Certificate(text)
  } catch (cause) {
    const { setting, file } = cert
    throw new TypeError(`${setting} must be a file with a certificate in PEM format, and ${file} is not`, { cause })
  }
  return text
}

/**
 * Reads the files of a certificate and its key. Throws a `TypeError` of one line if that fails, or they cannot be used
 * together.
 */
export async function readPair(cert: PemFile, key: PemFile): Promise<KeyPair> {
  const pair = { cert: await readCertificate(cert), key: await readText(key) }
  try {
    createSecureContext(pair)
  } catch (cause) {
    const fit = `the private key of ${cert.setting} in PEM format, without a passphrase`
    throw new TypeError(`${key.setting} must be a file with ${fit}, and ${key.file} is not`, { cause })
  }
  return pair
}

async function readText({ setting, file }: PemFile): Promise<string> {
  try {
    // Drops the byte order mark that some editors put first.
    return new TextDecoder().decode(await readFile(file))
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new TypeError(`${setting} must be a file that can be read: ${problem}`, { cause })
  }
}
