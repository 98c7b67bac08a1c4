// A hook of coding agents for PreToolUse: the call comes on standard input, and the decision goes to standard output, in
// the form that Claude Code and Codex document. The call runs only once the user has signed it.
//   command: node hook.ts    matcher: Bash    timeout: 120
// Agents let a call pass whose hook takes too long, so the hook's own time (WAIT_SECONDS, 90) has to be the shorter one.
// In a project of your own, import from 'countersign/approvals'.
import { json } from 'node:stream/consumers'

interface Call {
  readonly tool_name: string
  readonly tool_input: Readonly<Record<string, unknown>>
  readonly cwd: string
}

/** Ends the program with a decision. */
function decide(permissionDecision: 'allow' | 'deny', permissionDecisionReason: string, updatedInput?: unknown): void {
  const hookSpecificOutput = {
    hookEventName: 'PreToolUse',
    permissionDecision,
    permissionDecisionReason,
    ...(updatedInput === undefined ? {} : { updatedInput }),
  }
  process.stdout.write(JSON.stringify({ hookSpecificOutput }), () => process.exit(0))
}

try {
  const { approvals, user } = await import('./approver.ts')
  const call = (await json(process.stdin)) as Call
  const seconds = Number(process.env.WAIT_SECONDS ?? 90)
  const approval = await approvals.ask({
    ...user,
    title: `${call.tool_name} in ${call.cwd}`.slice(0, 120),
    action: { tool: call.tool_name, input: call.tool_input, folder: call.cwd },
    ttlSeconds: Math.max(30, seconds),
  })
  console.error(`Approve at ${approval.url}`)
  const decision = await approval.decision({ signal: AbortSignal.timeout(1000 * seconds) })
  // The input as it was signed, and not as it was asked for.
  if (decision.approved) decide('allow', `Signed by ${decision.wallet.address}`, decision.action.input)
  else decide('deny', `Not approved: ${decision.why}`)
} catch (error) {
  // Of an action that cannot be signed, the cause says why, such as a command of several lines.
  const { message, cause } = error as Error
  decide('deny', `Not approved: ${cause instanceof Error ? `${message}: ${cause.message}` : message}`)
}
