import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { redisTlsOf } from '../../service/service-store.ts'
import { type Check, type Finding, ok, problem, warning } from './check.ts'
import type { Setup } from './setup.ts'

const dayMs = 86_400_000

/** Days before its end from which on a certificate should be renewed. */
const renewalDays = 14

/** Longest time in milliseconds for a connection. */
const connectMs = 3000

/** Whether the files for TLS to Redis can be used. */
export const redisTls: Check<Setup> = {
  name: 'redis tls',
  applies({ settings }) {
    const { ca, cert, key } = redisTlsOf(settings)
    return [ca, cert, key].some((file) => file !== undefined)
  },
  async run({ settings }) {
    const files = redisTlsOf(settings)
    // Loaded on demand: few use it.
    const { readTls } = await import('../../store/redis/tls.ts')
    await readTls(files)
    const { ca, cert } = files
    return [
      ...(ca === undefined ? [] : [await judgeFile('COUNTERSIGN_REDIS_TLS_CA', ca)]),
      ...(cert === undefined ? [] : [await judgeFile('COUNTERSIGN_REDIS_TLS_CERT', cert)]),
    ]
  },
  advice: 'Correct that file or that setting.',
}

/** Whether the certificate of the service's own port is still good. A renewed one counts from a reload (SIGHUP) on. */
export const portTls: Check<Setup> = {
  name: 'port tls',
  applies: ({ settings }) => settings.tls.cert !== undefined,
  run: async ({ settings }) => await judgeFile('COUNTERSIGN_TLS_CERT', settings.tls.cert ?? ''),
  advice: 'Correct the file that COUNTERSIGN_TLS_CERT names.',
}

/**
 * Judges a file by its first certificate; one of authorities by that which ends last, because one that holds is enough.
 */
async function judgeFile(variable: string, file: string): Promise<Finding> {
  const text = await readFile(file, 'utf8')
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const ends = blocks.map((block) => Date.parse(new X509Certificate(block).validTo))
  const end = variable.endsWith('_CA') ? Math.max(...ends) : (ends[0] ?? 0)
  return judgeEnd(`the certificate in ${file} (${variable})`, end)
}

/**
 * Judges how long a certificate is still good.
 *
 * @param what names it, at the beginning of a sentence.
 * @param endsAt end of its time in epoch milliseconds.
 */
function judgeEnd(what: string, endsAt: number): Finding {
  const days = Math.floor((endsAt - Date.now()) / dayMs)
  const end = new Date(endsAt).toISOString().slice(0, 10)
  if (endsAt <= Date.now())
    return problem(`${what} expired on ${end}`, 'Renew it, and find out why that did not happen by itself.')
  const saw = `${what} is good until ${end}, for ${days} more days`
  return days < renewalDays ? warning(saw, 'Renew it.') : ok(saw)
}

/** Why clients refuse a certificate, by Node's code for it. */
const refusals: Readonly<Record<string, { readonly saw: string; readonly fix: string }>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: {
    saw: 'it is for another host name',
    fix: 'Give the proxy a certificate for this host name, or correct COUNTERSIGN_PUBLIC_URL.',
  },
  CERT_HAS_EXPIRED: {
    saw: 'one of those that the proxy sends with it has expired',
    fix: 'Let the proxy send the intermediate certificates that are valid now.',
  },
  CERT_NOT_YET_VALID: {
    saw: 'it is not valid yet',
    fix: 'Correct the clock of this machine, or give the proxy a certificate that is valid now.',
  },
}

/** The refusal of all authorities that this machine does not have. */
const unknownAuthority = {
  saw: 'this machine does not know the authority that signed it',
  fix:
    'Let the proxy send the intermediate certificates too; for an authority of your own, name its file in ' +
    'NODE_EXTRA_CA_CERTS.',
}

/** Whether the certificates at the public addresses are good. */
export const https: Check<Setup> = {
  name: 'https',
  applies: ({ urls }) => urls.some(isSecure),
  async run({ urls }, signal) {
    const secure = urls.filter(isSecure)
    return (await Promise.all(secure.map((url) => checkCertificate(url, signal)))).flat()
  },
  advice: 'Renew the certificate of the proxy.',
}

function isSecure(url: string): boolean {
  return url.startsWith('https:')
}

async function checkCertificate(url: string, signal: AbortSignal): Promise<Finding[]> {
  const socket = await shakeHands(new URL(url), signal)
  // The check "public url" says what is wrong with an address that cannot be reached.
  if (socket === undefined) return []
  const { valid_to: end } = socket.getPeerCertificate()
  const refusal = String(socket.authorizationError ?? '')
  socket.destroy()
  const found = judgeEnd(`the certificate of ${url}`, Date.parse(end))
  if (found.status === 'problem') return [found]
  if (refusal !== '') {
    const { saw, fix } = refusals[refusal] ?? unknownAuthority
    return [problem(`clients refuse the certificate of ${url}, because ${saw} (${refusal})`, fix)]
  }
  const speaks = socket.alpnProtocol === 'h2' ? 'HTTP/2' : 'HTTP/1.1 only, so no gRPC'
  return [{ ...found, saw: `${found.saw}; the address speaks ${speaks}` }]
}

/** Connects with any certificate. Resolves with `undefined` if that fails. */
function shakeHands({ hostname, port }: URL, signal: AbortSignal): Promise<TLSSocket | undefined> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port) || 443,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['h2', 'http/1.1'],
      // It is judged here.
      rejectUnauthorized: false,
    })
    const fail = (): void => {
      socket.destroy()
      resolve(undefined)
    }
    socket.setTimeout(connectMs, fail)
    socket.once('error', fail)
    signal.addEventListener('abort', fail, { once: true })
    socket.once('secureConnect', () => resolve(socket))
  })
}
