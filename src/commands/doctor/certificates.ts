import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { redisTlsOf } from '../../service-store.ts'
import { type Check, type Finding, ok, problem, warning } from './check.ts'
import type { Examination } from './examination.ts'
import { messageOf } from './words.ts'

const dayMs = 86_400_000

/** Days before its end from which on a certificate should be renewed. */
const renewalDays = 14

/** Whether the files for TLS to Redis can be used. */
export const redisTlsCheck: Check<Examination> = {
  name: 'redis tls',
  needs: [],
  limitMs: 2000,
  applies({ settings }) {
    const { ca, cert, key } = redisTlsOf(settings)
    return [ca, cert, key].some((file) => file !== undefined)
  },
  async run({ settings }) {
    const { ca, cert, key, serverName } = redisTlsOf(settings)
    try {
      // Loaded on demand: few use it.
      const { readTls } = await import('../../store/redis/tls.ts')
      await readTls({ ca, cert, key, serverName })
    } catch (error) {
      return [problem(messageOf(error), 'Correct that file or that setting.')]
    }
    const findings = await Promise.all([
      ca === undefined ? [] : judgeFile('COUNTERSIGN_REDIS_TLS_CA', ca),
      cert === undefined ? [] : judgeFile('COUNTERSIGN_REDIS_TLS_CERT', cert),
    ])
    return findings.flat()
  },
}

/** Judges a file by its first certificate; one of authorities by that which ends last, because one that holds is enough. */
async function judgeFile(variable: string, file: string): Promise<Finding[]> {
  const blocks =
    (await readFile(file, 'utf8')).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const ends = blocks.map((block) => Date.parse(new X509Certificate(block).validTo))
  return [
    judgeEnd(`the certificate in ${file} (${variable})`, variable.endsWith('_CA') ? Math.max(...ends) : (ends[0] ?? 0)),
  ]
}

/**
 * Judges how long a certificate is still good.
 *
 * @param what names it, at the beginning of a sentence.
 * @param endsAt end of its time in epoch milliseconds.
 */
export function judgeEnd(what: string, endsAt: number): Finding {
  const days = Math.floor((endsAt - Date.now()) / dayMs)
  const end = new Date(endsAt).toISOString().slice(0, 10)
  if (endsAt <= Date.now())
    return problem(`${what} expired on ${end}`, 'Renew it, and find out why that did not happen by itself.')
  const saw = `${what} is good until ${end}, for ${days} more days`
  return days < renewalDays ? warning(saw, 'Renew it.') : ok(saw)
}
