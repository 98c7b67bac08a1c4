#!/usr/bin/env node
import { isNodeSuitable } from './node-version.js'

// Everything else is imported after the check: versions of Node that are too old may not be able to load it.
if (isNodeSuitable()) {
  // Node.js has getters for them, which optimized code calls at each use: about a hundredth of a call's CPU time, as far as it shows.
  for (const name of ['Buffer', 'performance', 'process'] as const) {
    Object.defineProperty(globalThis, name, { value: globalThis[name], configurable: true, writable: true })
  }
  const { runCommand } = await import('./commands/command.ts')
  process.exitCode = await runCommand(process.argv.slice(2), process)
}
