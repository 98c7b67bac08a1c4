import { fileURLToPath } from 'node:url'
import { fromBinary, type JsonValue, toJson } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { expect, test } from 'vitest'
import { run } from './support/command.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

interface File {
  readonly dependency?: readonly string[]
}

/** What a folder of protos declares in package countersign.v1, without comments. */
async function declared(folder: string): Promise<File[]> {
  const { stdout } = await run(
    'node_modules/.bin/buf',
    ['build', folder, '--as-file-descriptor-set', '--exclude-source-info', '--exclude-imports', '-o', '-'],
    { cwd: root, encoding: 'buffer', maxBuffer: 10_000_000 },
  )
  const { file } = fromBinary(FileDescriptorSetSchema, stdout)
  const ours = file.filter((each) => each.package === 'countersign.v1').sort((a, b) => a.name.localeCompare(b.name))
  // The rules are extensions, which this JSON leaves out.
  return ours.map((each) => withoutEmpty(toJson(FileDescriptorProtoSchema, each)))
}

function withoutEmpty(json: JsonValue): File {
  return JSON.parse(JSON.stringify(json), (_key, value) => (JSON.stringify(value) === '{}' ? undefined : value))
}

/** The file with its imports of this project only. */
function ownImports({ dependency = [], ...rest }: File): File {
  const own = dependency.filter((file) => !file.startsWith('buf/'))
  return own.length === 0 ? rest : { ...rest, dependency: own }
}

test('gen/proto declares what proto does, but for the validation rules, and imports nothing of others', async () => {
  const plain = await declared('gen/proto')
  expect(plain).toHaveLength(6)
  expect(JSON.stringify(plain)).not.toContain('buf/')
  const withRules = (await declared('proto')).map((file) => ownImports(file))
  expect(plain).toEqual(withRules)
})
