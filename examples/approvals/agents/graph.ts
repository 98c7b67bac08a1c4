// LangGraph: a graph that stops at an interrupt until the user has decided, in this process or in another one with the same
// checkpoints. In a project of your own, import from 'countersign/approvals'.
import {
  Annotation,
  type BaseCheckpointSaver,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { ApprovalError } from '../../../src/integrations/approvals/index.ts'
import { approvals, user } from './approver.ts'

/** What a tool of the agent is to do. */
export interface Transfer {
  readonly to: string
  readonly amount: number
}

const State = Annotation.Root({
  transfer: Annotation<Transfer>(),
  /** What goes on with the approval. Checkpoints are the backend's own. */
  handle: Annotation<string>(),
  url: Annotation<string>(),
  said: Annotation<string>(),
})

/** A graph that makes a transfer once it is signed. Resume it with any value: only the user's decision counts. */
export function transferGraph(checkpointer: BaseCheckpointSaver, run: (transfer: Transfer) => Promise<void>) {
  // A node runs again from its begin when the graph goes on, so asking has a node of its own.
  const ask = async ({ transfer }: typeof State.State) => {
    const title = `Transfer ${transfer.amount} to ${transfer.to}`
    const { handle, url } = await approvals.ask({ ...user, title, action: { ...transfer, tool: 'transfer' } })
    return { handle, url }
  }
  const act = async ({ handle, url }: typeof State.State, { signal }: LangGraphRunnableConfig) => {
    interrupt({ approveAt: url })
    try {
      const approval = await approvals.resume(handle, { wallets: user.wallets })
      const decision = await approval.decision({ signal })
      if (!decision.approved) return { said: `Not done: ${decision.why}` }
      // The graph may have been stopped meanwhile.
      signal?.throwIfAborted()
      const { to, amount } = decision.action as Transfer
      await run({ to, amount })
      return { said: `Transferred ${amount} to ${to}` }
    } catch (error) {
      if (error instanceof ApprovalError) return { said: `Not done: ${error.reason}` }
      throw error
    }
  }
  return new StateGraph(State)
    .addNode('ask', ask)
    .addNode('act', act)
    .addEdge(START, 'ask')
    .addEdge('ask', 'act')
    .addEdge('act', END)
    .compile({ checkpointer })
}
