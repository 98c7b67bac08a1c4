// For a bot with the scope chat:write. In Slack's mrkdwn, &, < and > begin links and mentions.
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

export async function slack(channel: string, about: string, what: string, url: string): Promise<void> {
  const answer = await fetch(`${process.env.SLACK_URL ?? 'https://slack.com'}/api/chat.postMessage`, {
    method: 'POST',
    headers: { authorization: `Bearer ${process.env.SLACK_TOKEN}`, 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify({ channel, text: `*${about}*\n${escaped(what)}\n<${escaped(url)}|Open>` }),
    signal: AbortSignal.timeout(3000),
  })
  const { ok, error } = (await answer.json()) as { ok: boolean; error?: string }
  if (!ok) throw new Error(`Slack refused: ${error}`)
}
