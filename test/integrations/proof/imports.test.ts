import { builtinModules } from 'node:module'
import { expect, test } from 'vitest'
import { bundleProof } from '../../support/proof-bundle.ts'

const { metafile, files, atOnce } = await bundleProof()

/** What the files of the bundle are made of: those that are loaded at once, and the others. */
const inputs: { readonly atOnce: readonly string[]; readonly onDemand: readonly string[] } = {
  atOnce: inputsOf((name) => atOnce.includes(name)),
  onDemand: inputsOf((name) => !atOnce.includes(name)),
}

function inputsOf(isWanted: (name: string) => boolean): string[] {
  return Object.entries(metafile.outputs)
    .filter(([path]) => isWanted(path.replace('not-written/', '')))
    .flatMap(([, output]) => Object.keys(output.inputs))
}

test('what a page loads at once is wallets, texts and their cryptography', () => {
  const own = /^src\/(integrations\/proof\/|shared\/|core\/(wallet\/|challenge\.ts$|order\/canonical-payload\.ts$))/
  const packages = /(^|\/)node_modules\/(@noble\/(hashes|curves)|@scure\/base|tweetnacl)\//
  // tweetnacl has it for keys of its own making in Node, and says itself that browsers do not get it.
  const left = /^\(disabled\):crypto$/
  expect(inputs.atOnce).toContain('src/integrations/proof/verify.ts')
  expect(inputs.atOnce.filter((path) => ![own, packages, left].some((form) => form.test(path)))).toEqual([])
})

test('only viem, with what it needs, is loaded on demand', () => {
  expect(inputs.onDemand.some((path) => path.includes('node_modules/viem/'))).toBe(true)
  expect(inputs.onDemand.filter((path) => !path.includes('node_modules/'))).toEqual([])
})

test('nothing in it is of Node', () => {
  expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports.filter(({ external }) => external))).toEqual(
    [],
  )
  const specifiers = [...files.values()].flatMap((text) => [
    ...text.matchAll(/(?:from|import\(|require\()\s*["']([^"']+)["']/g),
  ])
  const builtins = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]))
  expect(specifiers.map(([, name = '']) => name).filter((name) => builtins.has(name))).toEqual([])
})
