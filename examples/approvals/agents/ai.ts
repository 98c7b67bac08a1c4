// The AI SDK with a tool that runs only once its user has signed the call. The SDK's own mock plays the model, so that no
// account is needed:
//   npm run example:approvals-ai                approve in a browser
//   npm run example:approvals-ai -- --approve   goes through by itself
// In a project of your own, import from 'countersign/approvals'.
import { generateText, isStepCount, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { startService } from '../service.ts'

const { guard, close } = await startService()
const sent: string[] = []

const sendMail = tool({
  description: 'Sends a mail. A person approves each one.',
  inputSchema: z.object({ to: z.string(), subject: z.string() }),
  execute: ({ to, subject }) =>
    guard(`Mail to ${to}`, { tool: 'send_mail', to, subject }, (action) => {
      sent.push(`${action.subject} → ${action.to}`)
      return `Sent to ${action.to}`
    }),
})

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const input = JSON.stringify({ to: 'ada@example.com', subject: 'The figures' })
const model = new MockLanguageModelV4({
  doGenerate: [
    {
      content: [{ type: 'tool-call', toolCallId: 'one', toolName: 'sendMail', input }],
      finishReason: { unified: 'tool-calls', raw: undefined },
      usage,
      warnings: [],
    },
    {
      content: [{ type: 'text', text: 'That is settled.' }],
      finishReason: { unified: 'stop', raw: undefined },
      usage,
      warnings: [],
    },
  ],
})

const prompt = 'Mail the figures to Ada.'
const { text, steps } = await generateText({ model, tools: { sendMail }, stopWhen: isStepCount(2), prompt })
for (const { toolResults } of steps) {
  for (const { output } of toolResults) console.log(`The model got: ${output}`)
}
console.log(`The model said: ${text}`)
console.log(`Mails that were sent: ${sent.join(', ') || 'none'}`)

await close()
