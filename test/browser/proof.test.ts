import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { ProofArtifact, ProofOptions, verifyProofArtifact } from '../../src/integrations/proof/index.ts'
import { listen } from '../support/listening.ts'
import { bundleProof } from '../support/proof-bundle.ts'
import { accepted, inCamelCase, refused } from '../support/proofs.ts'
import { expectNoFaults, hasBrowser, useBrowser } from './support.ts'

/** The window in which functions run that a test hands to a page. */
declare const window: { readonly verifyProofArtifact: typeof verifyProofArtifact }

const page = `<!doctype html><html lang="en"><title>A verifier</title><script type="module">
  import { verifyProofArtifact } from '/proof.js'
  window.verifyProofArtifact = verifyProofArtifact
</script></html>`

/** Serves the page and its script, with a policy that lets it reach nothing else. Returns its address. */
async function servePage(script: string): Promise<string> {
  const server = createServer(({ url }, response) => {
    const isScript = url === '/proof.js'
    response
      .setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
      .setHeader('content-security-policy', "default-src 'none'; script-src 'self' 'unsafe-inline'")
      .end(isScript ? script : page)
  })
  return `http://127.0.0.1:${await listen(server)}/`
}

describe.skipIf(!hasBrowser)('a page that verifies proofs, in Chromium', () => {
  const browser = useBrowser()

  test('accepts those that hold and refuses the others, each for its reason, and loads one script', async () => {
    const { page, trail } = await browser.open()
    const { script } = await bundleProof()
    await page.goto(await servePage(script))
    await page.waitForFunction(() => window.verifyProofArtifact !== undefined)
    const cases = [...accepted, ...refused].map(({ artifact, options }) => ({
      artifact: inCamelCase(artifact),
      options,
    }))
    const verdicts = await page.evaluate(async (all: { artifact: ProofArtifact; options: ProofOptions }[]) => {
      const judged: string[] = []
      for (const { artifact, options } of all) {
        const verdict = await window.verifyProofArtifact(artifact, options).then(
          ({ orderId }) => orderId,
          (error) => (error.name === 'ProofError' ? error.reason : String(error)),
        )
        judged.push(verdict)
      }
      return judged
    }, cases)
    const named = [...accepted, ...refused].map(({ name }, index) => [name, verdicts[index]])
    expect(named).toEqual([
      ...accepted.map(({ name, artifact }) => [name, /^Order ID: (.*)$/m.exec(artifact.message)?.[1]]),
      ...refused.map(({ name, reason }) => [name, reason]),
    ])
    expect(refused.length).toBeGreaterThan(10)
    const loaded = trail.requests.map(({ url }) => new URL(url).pathname).filter((path) => path.endsWith('.js'))
    expect(loaded).toEqual(['/proof.js'])
    expectNoFaults(trail)
  })
})
