import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { judgeEnd } from './certificates.ts'
import { type Check, type Finding, problem } from './check.ts'
import type { Examination } from './examination.ts'

/** Longest time in milliseconds for a connection. */
const limitMs = 3000

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

/** Those of all authorities that are not known here. */
const untrusted = {
  saw: 'this machine does not know the authority that signed it',
  fix: 'Let the proxy send the intermediate certificates too; for an authority of your own, name its file in NODE_EXTRA_CA_CERTS.',
}

/** Whether the certificates at the public addresses are good. */
export const httpsCheck: Check<Examination> = {
  name: 'https',
  needs: [],
  limitMs: 4000,
  applies: ({ urls }) => urls.some((url) => url.startsWith('https:')),
  async run({ urls }, signal) {
    const secure = urls.filter((url) => url.startsWith('https:'))
    return (await Promise.all(secure.map((url) => checkCertificate(url, signal)))).flat()
  },
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
    const { saw, fix } = refusals[refusal] ?? untrusted
    return [problem(`clients refuse the certificate of ${url}, because ${saw} (${refusal})`, fix)]
  }
  const speaks = socket.alpnProtocol === 'h2' ? 'HTTP/2' : 'HTTP/1.1 only, so no gRPC'
  return [{ ...found, saw: `${found.saw}; the address speaks ${speaks}` }]
}

/** Connects, whatever the certificate is. Resolves with `undefined` if that fails. */
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
    socket.setTimeout(limitMs, fail)
    socket.once('error', fail)
    signal.addEventListener('abort', fail, { once: true })
    socket.once('secureConnect', () => resolve(socket))
  })
}
