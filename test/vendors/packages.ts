import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { environment, minuteMs } from '../examples/tools.ts'
import { run } from '../support/command.ts'

/**
 * The vendors' packages. MetaMask's are the newest that fit each other. Its controllers that only need a network, the
 * price of a token and the like are left out, so npm must not look for peers.
 */
const packages = {
  '@ledgerhq/device-management-kit': '1.10.0',
  '@ledgerhq/device-signer-kit-solana': '1.13.0',
  '@ledgerhq/hw-app-eth': '7.9.0',
  '@ledgerhq/hw-transport': '6.36.1',
  '@metamask/approval-controller': '8.0.0',
  '@metamask/browser-passworder': '6.0.0',
  '@metamask/controller-utils': '11.20.0',
  '@metamask/gator-permissions-controller': '0.6.0',
  '@metamask/keyring-controller': '25.0.0',
  '@metamask/logging-controller': '7.0.0',
  '@metamask/messenger': '0.3.0',
  '@metamask/signature-controller': '37.0.0',
  '@nimiq/core': '2.21.0',
  '@nimiq/hub-api': '1.15.0',
  '@okxweb3/coin-ethereum': '1.1.2',
  '@okxweb3/coin-solana': '1.1.0',
  '@solana-mobile/wallet-standard-mobile': '0.6.0',
  '@solana/wallet-standard-util': '1.1.4',
  '@trezor/connect': '9.7.3',
  '@trustwallet/wallet-core': '4.8.2',
} as const

export type PackageName = keyof typeof packages

/** Packages with their versions, as a table names them. */
export function versionsOf(...names: readonly PackageName[]): string {
  return names.map((name) => `\`${name}@${packages[name]}\``).join(', ')
}

/** Installs the packages into a folder. Resolves with what loads them. */
export function installVendors(cwd: string): Promise<NodeJS.Require> {
  // What the vendors' packages take for granted.
  const peers = ['@ledgerhq/context-module', 'purify-ts', 'rxjs', 'tslib']
  return install(cwd, packages, peers)
}

/** Installs MetaMask's packages, and further ones, into a folder. Resolves with what loads them. */
export function installMetaMask(cwd: string, further: Readonly<Record<string, string>>): Promise<NodeJS.Require> {
  const own = Object.entries(packages).filter(([name]) => name.startsWith('@metamask/'))
  return install(cwd, { ...Object.fromEntries(own), ...further })
}

/** Installs packages, of these versions, into a folder. Resolves with what loads them. */
export async function install(
  cwd: string,
  versions: Readonly<Record<string, string>>,
  peers: readonly string[] = [],
): Promise<NodeJS.Require> {
  await writeFile(join(cwd, 'package.json'), '{"private":true}')
  const options = ['--legacy-peer-deps', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  const exact = Object.entries(versions).map(([name, version]) => `${name}@${version}`)
  await run('npm', ['install', ...options, '--loglevel=error', ...exact, ...peers], {
    cwd,
    env: environment,
    timeout: 10 * minuteMs,
  })
  return createRequire(join(cwd, 'vendors.js'))
}
