/**
 * Writes gen/proto: the definitions of proto/countersign without validation rules. They import nothing of another
 * project, so protoc and its plugins generate code from them for any language, without the files of protovalidate.
 */
import { glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../proto', import.meta.url))
const target = fileURLToPath(new URL('../gen/proto', import.meta.url))

const validationImport = 'import "buf/validate/validate.proto";\n'

/** The options of a field, if the first is a rule. Strings among them can contain brackets. */
const fieldRules = / \[\s*\(buf\.validate\.field\)(?:"(?:[^"\\]|\\.)*"|[^"\]])*\](?=;)/g

/** A rule of a whole message. */
const messageRules = / {2}option \(buf\.validate\.message\)[^;]*;\n/g

const notice = '// Made from proto/ by npm run generate, without the validation rules. Do not edit.\n\n'

await rm(target, { recursive: true, force: true })
for await (const file of glob('countersign/**/*.proto', { cwd: source })) {
  const text = await readFile(join(source, file), 'utf8')
  const to = join(target, file)
  await mkdir(dirname(to), { recursive: true })
  await writeFile(
    to,
    notice + text.replace(validationImport, '').replaceAll(fieldRules, '').replaceAll(messageRules, ''),
  )
}
