/**
 * Whether Node.js is new enough, and the one line that says so if it is not. It is JavaScript, in syntax that old versions know,
 * because those that are refused cannot read TypeScript.
 */

/** Oldest major version of Node.js that Countersign runs on; the same as `engines` in package.json. */
const oldest = 24

const problem =
  Number.parseInt(process.versions.node, 10) >= oldest
    ? undefined
    : `Node.js ${oldest} or later is needed, and this is ${process.versions.node}; see https://nodejs.org/en/download`

/**
 * Whether Node.js is new enough, for commands. If not, the line is on standard error, and the exit code becomes 1. The command
 * calls it before it loads anything else, and `npm start` before that.
 */
export function isNodeSuitable() {
  if (problem === undefined) return true
  process.stderr.write(`countersign: ${problem}\n`)
  process.exitCode = 1
  return false
}

/** Throws a `TypeError` with the line if Node.js is too old, for programs that import the package. */
export function requireSuitableNode() {
  if (problem !== undefined) throw new TypeError(problem)
}
