import type { inbox as english } from '../english/inbox.ts'

export const inbox: Readonly<Record<keyof typeof english, string>> = {
  'inbox.title': 'Deine Anfragen',
  'inbox.count': 'Offen: {count}',
  'inbox.account': 'Dein Konto',
  'inbox.all': 'Alle deine Anfragen',
  'inbox.asked': 'Angefragt von {name}',
  'inbox.untitled': 'Eine Anfrage ohne Titel',
  'inbox.expires': 'Läuft in {time} ab',
  'inbox.review': 'Prüfen',
  'inbox.review.request': 'Anfrage prüfen',
  'inbox.none': 'Alles erledigt.',
  'inbox.none.text': 'Neue Anfragen erscheinen hier.',
  'inbox.over.title': 'Diese Anfrage ist vorbei',
  'inbox.over.text':
    'Sie wurde beantwortet oder zurückgezogen, ist abgelaufen oder für ein anderes Konto. Du bist mit {address} angemeldet.',
  'inbox.over.other': 'Andere Wallet verwenden',
  'inbox.elsewhere.title': 'Melde dich hier an, um deine Anfragen zu sehen',
  'inbox.elsewhere.text':
    'Du hast dich hier mit deinem Handy angemeldet. Um Anfragen zu sehen, melde dich auf diesem Gerät mit einer Wallet an.',
  'inbox.signed-out.title': 'Du bist abgemeldet',
  'inbox.signed-out.text': 'Melde dich wieder an, um deine Anfragen zu sehen. Nichts ist verloren.',
  'inbox.sign-in': 'Mit einer Wallet anmelden',
}
