import { createServer } from 'node:net'
import { checkAdapters, walletAdapters } from '../../core/wallet/adapters.ts'
import { chooseRecovery } from '../../core/wallet/webassembly.ts'
import { listenOn } from '../../http/port/listen.ts'
import { openToAnyone, peopleOf } from '../../service/start-checks.ts'
import { countOpenClients, issuerCheck } from '../oidc.ts'
import { forwardedHeaders, origins, publicUrl, readiness } from './address.ts'
import { ask } from './ask.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'
import { postgres } from './postgres.ts'
import type { Setup } from './setup.ts'
import { disk, redis, store } from './store.ts'
import { https, portTls, redisTls } from './tls.ts'

/** Difference between two clocks in milliseconds beyond which one of them counts as wrong. */
const mostMs = 5000

/** Whether this machine's clock agrees with that of the store, and with that at the public address. */
const clock: Check<Setup> = {
  name: 'clock',
  async run(setup) {
    const leads = [
      { whose: `the clock of ${setup.redisUrl ? 'Redis' : 'PostgreSQL'}`, ms: await storeLead(setup) },
      { whose: `the clock at ${setup.publicUrl}`, ms: await publicLead(setup) },
    ].filter(({ ms }) => !Number.isNaN(ms))
    if (leads.length === 0) return skipped('no other clock can be read')
    const saw = leads.map(({ whose, ms }) => `${whose} ${comparison(ms)}`).join(', and ')
    if (leads.every(({ ms }) => Math.abs(ms) <= mostMs)) return ok(saw)
    return problem(
      `${saw}: what expires in minutes, such as the text that a wallet signs, can be expired at once or live too long`,
    )
  },
  advice: 'Let all machines take their time from a time server, by chrony or systemd-timesyncd for example.',
}

/** Milliseconds by which the store's clock is ahead of this machine's; `NaN` if it cannot be read. */
async function storeLead(setup: Setup): Promise<number> {
  // The embedded store uses this machine's clock.
  if (setup.redisUrl === undefined && setup.postgresUrl === undefined) return Number.NaN
  return await setup.store().then(
    (opened) => opened.now() - Date.now(),
    () => Number.NaN,
  )
}

/** As {@link storeLead}, of the clock at the public address. */
async function publicLead(setup: Setup): Promise<number> {
  const look = await setup.lookAt(setup.publicUrl)
  if (look.kind !== 'countersign') return Number.NaN
  // It names the second that has begun.
  return Date.parse(look.answer.headers.date ?? '') + 500 - look.answer.at
}

function comparison(ms: number): string {
  const seconds = Math.abs(ms) / 1000
  if (seconds < 1) return 'agrees with that of this machine within a second'
  return `is ${seconds.toFixed(1)} seconds ${ms > 0 ? 'ahead of' : 'behind'} that of this machine`
}

/** What checks signatures of Ethereum, and whether the JSON-RPC servers for contract wallets answer. */
const wallets: Check<Setup> = {
  name: 'wallets',
  applies: ({ settings }) => settings.evmRpc !== undefined || settings.adapters.includes('ethereum'),
  async run({ settings }) {
    const warnings: string[] = []
    // Of the fields, only the chain is repeated: an error of the RPC can name its address, which can contain a key.
    const recovery = chooseRecovery(settings.adapters)
    await checkAdapters(walletAdapters(settings.adapters, { ...settings, recovery }), settings, (text, fields) => {
      warnings.push(fields?.chainId === undefined ? text : `chain ${fields.chainId}: ${text}`)
    })
    const servers = settings.evmRpc === undefined ? '' : '; the servers of COUNTERSIGN_EVM_RPC answer for their chains'
    if (warnings.length === 0) return ok(`${recovery?.kind} checks signatures of Ethereum${servers}`)
    return warnings.map((text) => warning(text, wallets.advice))
  },
  advice: 'Correct COUNTERSIGN_EVM_RPC or COUNTERSIGN_ADAPTERS, or install the package tiny-secp256k1 again.',
}

/** What anyone with a wallet gets into. */
const people: Check<Setup> = {
  name: 'people',
  async run({ settings }) {
    const { admit, people: file, oidc, adapters } = settings
    const listed = file === undefined ? undefined : await peopleOf(settings, walletAdapters(adapters, settings))
    const open = openToAnyone(settings, oidc.clients === undefined ? 0 : await countOpenClients(oidc.clients))
    if (open !== undefined) return ok(`${open}; docs/private-applications.md has what to do if that is wrong`)
    if (admit === 'people') return ok(`only the ${listed?.size} people of COUNTERSIGN_PEOPLE sign in`)
    return ok('nothing that this service protects is open to anyone with a wallet')
  },
  advice: 'Correct the files that COUNTERSIGN_PEOPLE and COUNTERSIGN_OIDC_CLIENTS name.',
}

/** Whether the service can listen on its port, or does so already. */
const port: Check<Setup> = {
  name: 'port',
  async run(setup) {
    const { host, port, basePath } = setup.settings
    const look = await setup.lookHere()
    if (look === undefined) return ok('the port is 0, so each start picks a free one')
    if (look.kind === 'countersign') {
      return ok(`Countersign runs here, on port ${port} of ${host}`)
    }
    if (look.kind === 'other base path') {
      return problem(
        `Countersign runs on port ${port} of ${host}, but has nothing at ${basePath}`,
        'Give doctor the settings of the running service (COUNTERSIGN_BASE_PATH), or restart the service with these.',
      )
    }
    // A program that listens and is no Countersign may also have said nothing.
    for (const server of await listenOn({ port, host, createServer: () => createServer() })) server.close()
    return ok(`port ${port} of ${host} is free; the service does not run here`)
  },
  advice: 'Set another port or host (PORT, HOST).',
}

/** The checks that need settings which fit, in the order of the report. A check stands behind those that it needs. */
export const checks: readonly Check<Setup>[] = [
  redisTls,
  store,
  disk,
  redis,
  postgres,
  clock,
  wallets,
  people,
  portTls,
  port,
  https,
  publicUrl,
  issuerCheck(ask),
  readiness,
  forwardedHeaders,
  origins,
]
