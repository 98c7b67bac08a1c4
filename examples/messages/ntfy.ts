// A topic is readable by all who guess its name, unless the server has access control. Sent as JSON: in ntfy's headers, a
// line break would begin another header.
export async function ntfy(topic: string, title: string, message: string, click: string): Promise<void> {
  const answer = await fetch(process.env.NTFY_URL ?? 'https://ntfy.sh', {
    method: 'POST',
    headers: { authorization: `Bearer ${process.env.NTFY_TOKEN}` },
    body: JSON.stringify({ topic, title, message, click }),
    signal: AbortSignal.timeout(3000),
  })
  if (!answer.ok) throw new Error(`ntfy answered ${answer.status}`)
}
