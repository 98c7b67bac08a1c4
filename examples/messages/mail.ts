// nodemailer writes line breaks in a subject as spaces: they would begin another header.
import { createTransport } from 'nodemailer'

const transport = createTransport(process.env.SMTP_URL, { from: process.env.MAIL_FROM })
const inHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

export async function mail(to: string, about: string, what: string, url: string): Promise<void> {
  const html = `<p>${inHtml(what)}</p><p><a href="${inHtml(url)}">Open</a></p>`
  await transport.sendMail({ to, subject: `${about}: ${what}`, text: `${what}\n\n${url}`, html })
}
