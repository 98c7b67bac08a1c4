import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Writes the URL of every module that is loaded. */
const hooks = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      console.log(url)
      return next(url, context)
    },
  })
`)}`

/** The modules that a program loads until it ends, as URLs. */
export async function modulesOf(program: URL): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', hooks, fileURLToPath(program)])
  return stdout.split('\n').filter((line) => /^(file|node):/.test(line))
}
