import { type Check, ok, problem, skipped } from './check.ts'
import type { Examination } from './examination.ts'

/** Difference between two clocks in milliseconds beyond which one of them counts as wrong. */
const mostMs = 5000

/** Whether this machine's clock agrees with that of the store, and with that at the public address. */
export const clockCheck: Check<Examination> = {
  name: 'clock',
  needs: [],
  limitMs: 6500,
  async run(examination) {
    const leads = (await Promise.all([storeLead(examination), publicLead(examination)])).filter(
      (lead) => lead !== undefined,
    )
    if (leads.length === 0) return [skipped('no other clock can be read')]
    const saw = leads.map(({ whose, ms }) => `${whose} ${comparison(ms)}`).join(', and ')
    if (leads.every(({ ms }) => Math.abs(ms) <= mostMs)) return [ok(saw)]
    return [
      problem(
        `${saw}: what expires in minutes, such as the text that a wallet signs, can be expired at once or live too long`,
        'Let all machines take their time from a time server, by chrony or systemd-timesyncd for example.',
      ),
    ]
  },
}

/** How far a clock is ahead of this machine's. */
interface Lead {
  readonly whose: string
  readonly ms: number
}

async function storeLead(examination: Examination): Promise<Lead | undefined> {
  // The embedded store goes by this machine's clock.
  if (examination.redisUrl === undefined) return undefined
  try {
    const opened = await examination.store()
    return { whose: 'the clock of Redis', ms: opened.now() - Date.now() }
  } catch {
    return undefined
  }
}

async function publicLead(examination: Examination): Promise<Lead | undefined> {
  const look = await examination.lookAt(examination.publicUrl)
  if (look.kind !== 'countersign') return undefined
  const date = Date.parse(look.answer.headers.date ?? '')
  // It names the second that has begun.
  return Number.isNaN(date)
    ? undefined
    : { whose: `the clock at ${examination.publicUrl}`, ms: date + 500 - look.answer.at }
}

function comparison(ms: number): string {
  const seconds = Math.abs(ms) / 1000
  if (seconds < 1) return 'agrees with that of this machine within a second'
  return `is ${seconds.toFixed(1)} seconds ${ms > 0 ? 'ahead of' : 'behind'} that of this machine`
}
