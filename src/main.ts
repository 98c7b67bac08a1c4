#!/usr/bin/env node
import { isNodeSuitable } from './base/node-version.js'

// Everything else is imported after the check: versions of Node that are too old may not be able to load it.
if (isNodeSuitable()) {
  const { runCommand } = await import('./commands/command.ts')
  process.exitCode = await runCommand(process.argv.slice(2), process)
}
