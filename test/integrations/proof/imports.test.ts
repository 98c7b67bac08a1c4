import { builtinModules } from 'node:module'
import { expect, test } from 'vitest'
import { bundleProof } from '../../support/proof-bundle.ts'

const { metafile, script } = await bundleProof()

test('countersign/proof is wallets, texts and their cryptography', () => {
  const own =
    /^src\/(integrations\/proof\/|shared\/|core\/(wallet\/|challenge-text\.ts$|order\/canonical-payload\.ts$))/
  const packages = /(^|\/)node_modules\/(@noble\/(hashes|curves)|@scure\/base|tweetnacl)\//
  // tweetnacl has it for keys of its own making in Node, and says itself that browsers do not get it.
  const left = /^\(disabled\):crypto$/
  const inputs = Object.keys(metafile.inputs)
  expect(inputs).toContain('src/integrations/proof/verify.ts')
  expect(inputs.filter((path) => ![own, packages, left].some((form) => form.test(path)))).toEqual([])
})

test('nothing in it is of Node', () => {
  const outputs = Object.values(metafile.outputs)
  expect(outputs.flatMap(({ imports }) => imports.filter(({ external }) => external))).toEqual([])
  const specifiers = [...script.matchAll(/(?:from|import\(|require\()\s*["']([^"']+)["']/g)]
  const builtins = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]))
  expect(specifiers.map(([, name = '']) => name).filter((name) => builtins.has(name))).toEqual([])
})
