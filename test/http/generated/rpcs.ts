import { readdirSync } from 'node:fs'
import type { DescMethod, DescService } from '@bufbuild/protobuf'

const generated = new URL('../../../gen/server/', import.meta.url)

/** Every RPC of every service whose code was generated. */
export async function allRpcs(): Promise<DescMethod[]> {
  const files = readdirSync(generated, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const modules = (await Promise.all(files.map((name) => import(new URL(name, generated).href)))) as object[]
  return modules.flatMap((exported) => Object.values(exported).filter(isService)).flatMap(({ methods }) => methods)
}

function isService(exported: unknown): exported is DescService {
  return typeof exported === 'object' && exported !== null && 'kind' in exported && exported.kind === 'service'
}
