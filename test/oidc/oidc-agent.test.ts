import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CountersignOptions } from '../../src/service/config.ts'
import { hasPart } from '../support/optional.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { trustedAuthority } from '../support/tls.ts'
import { programs, startIssuer } from './applications.ts'
import { allowCode, terminal } from './devices.ts'

const isComplete = ['openssl', 'oidc-agent'].every(hasPart)
const authority = isComplete ? await trustedAuthority() : undefined

/** Runs oidc-agent with a home of its own; a person allows its code. Resolves with the access tokens that it got. */
async function tokensOfAgent(issuer: string, scope: string): Promise<string[]> {
  const home = temporaryFolder()
  const env = { ...process.env, HOME: home, ISSUER: issuer, SCOPE: scope, CA: authority!.cert }
  const child = spawn('bash', [join(programs, 'oidc-agent.sh')], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  const tokens: string[] = []
  for await (const line of createInterface(child.stdout)) {
    const [, code] = /\b([B-Z]{4}-[B-Z]{4})\b/.exec(line) ?? []
    if (code !== undefined) await allowCode(issuer, code)
    const [, token] = /^token (.*)/.exec(line) ?? []
    if (token !== undefined) tokens.push(token)
  }
  return tokens
}

describe.skipIf(!isComplete)('oidc-agent', () => {
  test.each<[string, CountersignOptions['oidc'], string]>([
    ['without e-mail', {}, 'openid profile offline_access'],
    ['with e-mail', { email: '{user_id}@users.example' }, 'openid profile email offline_access'],
  ])('refreshes with the scopes that it asked for, as a client without a secret, %s', async (_name, oidc, granted) => {
    const metadata = { ...terminal.metadata, client_id: 'agent' }
    const issuer = await startIssuer(authority!, { oidc: { ...oidc, device: true } }, { metadata })
    const tokens = await tokensOfAgent(issuer, 'openid profile email offline_access')
    expect(new Set(tokens).size).toBe(2)
    for (const token of tokens) {
      const body = new URLSearchParams({ client_id: 'agent', token })
      const answer = await fetch(`${issuer}/api/auth/oidc/introspect`, { method: 'POST', body })
      const { active, scope } = await answer.json()
      expect([active, scope?.split(' ').sort()]).toEqual([true, granted.split(' ').sort()])
    }
  })
})
