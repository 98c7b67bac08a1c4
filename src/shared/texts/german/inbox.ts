import type { inbox as english } from '../english/inbox.ts'

export const inbox: Readonly<Record<keyof typeof english, string>> = {
  'inbox.title': 'Deine Anfragen',
  'inbox.count': 'Für dich: {count}',
  'inbox.account': 'Dein Konto',
  'inbox.all': 'Alle deine Anfragen',
  'inbox.asked': 'Angefragt von {name}',
  'inbox.untitled': 'Eine Anfrage ohne Titel',
  'inbox.expires': 'Läuft in {time} ab',
  'inbox.review': 'Prüfen',
  'inbox.review.request': 'Anfrage prüfen',
  'inbox.none': 'Nichts wartet auf dich.',
  'inbox.none.text': 'Neue Anfragen erscheinen hier von selbst.',
  'inbox.over.title': 'Diese Anfrage ist vorbei',
  'inbox.over.text':
    'Sie wurde beantwortet oder zurückgezogen, ist abgelaufen oder für ein anderes Konto. Du bist mit {address} angemeldet.',
  'inbox.over.other': 'Andere Wallet verwenden',
  'inbox.elsewhere.title': 'Melde dich hier an, um deine Anfragen zu sehen',
  'inbox.elsewhere.text':
    'Ein Handy hat diesen Browser angemeldet. Anfragen siehst du nur, wo du dich mit einer Wallet auf dem Gerät selbst angemeldet hast.',
  'inbox.signed-out.title': 'Du bist abgemeldet',
  'inbox.signed-out.text': 'Melde dich wieder an, um deine Anfragen zu sehen. Nichts ist verloren.',
  'inbox.sign-in': 'Mit einer Wallet anmelden',
}
