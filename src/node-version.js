/**
 * Whether Node.js is new enough. If not, one line on standard error says so, and the exit code becomes 1. The command loads this
 * file before all others, and `npm start` runs it. It is JavaScript, in syntax that old versions know, because those that are
 * refused cannot read TypeScript.
 */

/** Oldest major version of Node.js that Countersign runs on; the same as `engines` in package.json. */
const oldest = 24

export const isNodeSuitable = Number.parseInt(process.versions.node, 10) >= oldest

if (!isNodeSuitable) {
  process.stderr.write(
    `countersign: Node.js ${oldest} or later is needed, and this is ${process.versions.node}; see https://nodejs.org/en/download\n`,
  )
  process.exitCode = 1
}
