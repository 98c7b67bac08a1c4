import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { canonicalPayload } from '../../src/core/order/canonical-payload.ts'
import {
  type ProofArtifact,
  ProofError,
  type ProofOptions,
  verifyProofArtifact,
} from '../../src/integrations/proof/index.ts'
import { given } from '../../src/shared/defined-fields.ts'
import { run } from '../support/command.ts'
import { hasPart, systemPython } from '../support/optional.ts'
import { accepted, inCamelCase, refused } from '../support/proofs.ts'
import { readFromRoot, root } from '../support/repository.ts'
import { withSources } from '../support/snippets.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const page = await readFromRoot('docs/proofs.md')

/** The page's piece of code in a language. */
function codeIn(language: string): string {
  const code = new RegExp(`(?<=\`\`\`${language}\\n)[\\s\\S]*?(?=\`\`\`)`).exec(page)?.[0]
  if (code === undefined) throw new Error(`docs/proofs.md has no code in ${language}`)
  return code
}

test('the function of the examples returns what the payer signed, and nothing for another invoice', async () => {
  const file = join(temporaryFolder(), 'approval.ts')
  await writeFile(file, withSources(await readFromRoot('examples/proofs/approval-of.ts')))
  const { approvalOf } = await import(file)
  const { artifact, owner } = accepted[0]!
  const payer = { adapterId: owner.adapterId, address: owner.address }
  const invoice = { payer, payload: artifact.payload, createdAt: 0 }
  expect(await approvalOf(invoice, artifact)).toMatchObject({ payload: artifact.payload, address: owner.address })
  expect(await approvalOf({ ...invoice, payload: '{}' }, artifact)).toBe(undefined)
  await expect(approvalOf({ ...invoice, payer: {} }, artifact)).rejects.toThrow(TypeError)
})

test('the page names every reason', async () => {
  const source = await readFromRoot('src/integrations/proof/artifact.ts')
  const reasons = [...source.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, reason]) => reason)
  expect(reasons).toHaveLength(11)
  for (const reason of reasons) expect(page).toMatch(new RegExp(`^\\|[^|]*\`${reason}\``, 'm'))
})

test("the page's command runs", async () => {
  const folder = temporaryFolder()
  const { artifact } = accepted[0]!
  await writeFile(join(folder, 'proof.json'), JSON.stringify(artifact))
  await writeFile(join(folder, 'invoice.json'), artifact.payload!)
  const command = codeIn('sh').replace(/^countersign/, '"$NODE" "$MAIN"')
  const env = { NODE: process.execPath, MAIN: join(root, 'src/main.ts') }
  const { stdout } = await run('sh', ['-c', command], { cwd: folder, env })
  expect(stdout).toMatch(/^valid: NQ02 /)
})

/** What a recipe is asked about: what it reads of an artifact, and what that has to agree with. */
interface Question {
  readonly name: string
  readonly artifact: Pick<ProofArtifact, 'message' | 'signatureHex' | 'adapterId' | 'publicKeyHex'>
  readonly appName: string
  readonly origin: string
  readonly adapterId: string
  readonly publicKeyHex: string
  readonly payloadHash: string | null
  readonly payload: string | null
  /** Epoch milliseconds. */
  readonly notBefore: number
}

/**
 * Every vector of the recipes' adapters, with what the package says of it. The recipes look at nothing of an artifact
 * that they do not need, so the package is not shown it either.
 */
async function questions(): Promise<{ readonly question: Question; readonly holds: boolean }[]> {
  const asked = []
  for (const { name, artifact, options } of [...accepted, ...refused]) {
    const owners = accepted.map(({ owner }) => owner).filter(({ adapterId }) => adapterId === artifact.adapter_id)
    const { publicKeyHex = '', address } =
      owners.find((owner) => owner.publicKeyHex === artifact.public_key_hex.toLowerCase()) ?? owners[0] ?? {}
    const { payloadHash, payload, payloadLine, appName, origin, notBefore = 0 } = options
    const isAsked = payload === undefined ? payloadHash !== undefined : payloadLine === 'required'
    if (!/^(nimiq|ed25519)$/.test(artifact.adapter_id) || !isAsked) continue
    const { message, signatureHex, adapterId, publicKeyHex: key } = inCamelCase(artifact)
    const signed = { message, signatureHex, adapterId, publicKeyHex: key }
    const holds = await doesHold(
      { ...signed, address: address! },
      { appName, origin, ...given({ payloadHash, payload }), notBefore, owner: { adapterId, publicKeyHex } },
    )
    const known = {
      payloadHash: payloadHash ?? null,
      payload: payload === undefined ? null : canonicalPayload(payload),
    }
    const question = { name, artifact: signed, appName, origin, adapterId, publicKeyHex, ...known, notBefore }
    asked.push({ question, holds })
  }
  return asked
}

async function doesHold(artifact: ProofArtifact, options: ProofOptions): Promise<boolean> {
  return await verifyProofArtifact(artifact, options).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ProofError) return false
      throw error
    },
  )
}

/** Expects a recipe to say of each vector what the package says. `ask` answers with the names of those that hold. */
async function expectAgreement(ask: (questions: string) => Promise<string>): Promise<void> {
  const asked = await questions()
  const holding = asked.filter(({ holds }) => holds).map(({ question }) => question.name)
  expect(asked.length - holding.length).toBeGreaterThan(25)
  expect(holding.length).toBeGreaterThan(5)
  expect(JSON.parse(await ask(JSON.stringify(asked.map(({ question }) => question))))).toEqual(holding)
}

/** Runs a program with a text as its standard input. */
async function feed(program: string, args: readonly string[], input: string, options: object): Promise<string> {
  const running = run(program, args, options)
  running.child.stdin?.end(input)
  return (await running).stdout as string
}

describe('the files that the page names say of every vector what the package says', () => {
  test.skipIf(!hasPart('python3-cryptography'))('Python', async () => {
    const folder = temporaryFolder()
    await cp(join(root, 'examples/python/proof.py'), join(folder, 'proof.py'))
    const asking = `
import json, sys
from datetime import datetime, timezone
from proof import verify_proof
holding = []
for question in json.load(sys.stdin):
    name, artifact, not_before = question["name"], question["artifact"], question["notBefore"]
    try:
        verify_proof(artifact, app_name=question["appName"], origin=question["origin"], adapter_id=question["adapterId"],
                     public_key_hex=question["publicKeyHex"], payload_hash=question["payloadHash"], payload=question["payload"],
                     not_before=datetime.fromtimestamp(not_before / 1000, timezone.utc))
        holding.append(name)
    except ValueError:
        pass
print(json.dumps(holding))
`
    await expectAgreement((input) => feed(systemPython, ['-c', asking], input, { cwd: folder }))
  })

  test.skipIf(!hasPart('go'))(
    'Go',
    async () => {
      const folder = temporaryFolder()
      await mkdir(join(folder, 'proof'))
      await writeFile(join(folder, 'go.mod'), 'module recipe\n\ngo 1.19\n')
      await cp(join(root, 'examples/go/proof.go'), join(folder, 'proof/proof.go'))
      await writeFile(
        join(folder, 'main.go'),
        `package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"time"

	"recipe/proof"
)

type question struct {
	Name, AppName, Origin, AdapterID, PublicKeyHex, PayloadHash, Payload string
	Artifact                                                             proof.Artifact
	NotBefore                                                            int64
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	holding := []string{}
	for _, q := range questions {
		key, _ := hex.DecodeString(q.PublicKeyHex)
		expected := proof.Expected{AppName: q.AppName, Origin: q.Origin, AdapterID: q.AdapterID, PayloadHash: q.PayloadHash,
			Payload: q.Payload, PublicKey: key, NotBefore: time.UnixMilli(q.NotBefore)}
		if _, err := proof.Verify(q.Artifact, expected); err == nil {
			holding = append(holding, q.Name)
		}
	}
	json.NewEncoder(os.Stdout).Encode(holding)
}
`,
      )
      const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GOCACHE: join(folder, 'cache') }
      await expectAgreement((input) => feed('go', ['run', '.'], input, { cwd: folder, env, timeout: 300_000 }))
    },
    330_000,
  )
})
