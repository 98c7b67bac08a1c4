import type { demo as english } from '../english/demo.ts'

export const demo: Readonly<Record<keyof typeof english, string>> = {
  'demo.title': 'Mit einer Wallet anmelden',
  'demo.text': 'Zwei Dinge zum Ausprobieren. Jedes geht in deiner eigenen Anwendung genauso.',
  'demo.ended':
    'Du bist abgemeldet: Diese Sitzung wurde auf dem Handy beendet, das sie bestätigt hat, oder von einer anderen deiner Sitzungen aus.',
  'demo.phone.button': 'Code anzeigen',
  'demo.phone.created.here': 'Öffne die Anfrage auf diesem Handy.',
  'demo.sign.title': 'Eine Signatur anfordern',
  'demo.sign.text': 'Du bekommst einen Nachweis, den jeder später prüfen kann, ohne diesen Dienst.',
  'demo.sign.order.title': 'Titel',
  'demo.sign.order.title.sample': 'Rechnung 1042 freigeben',
  'demo.sign.order.summary': 'Zusammenfassung',
  'demo.sign.order.summary.sample': '250 NIM an die Grüne Bäckerei für zwölf Brote zahlen.',
  'demo.sign.order.payload': 'Inhalt als JSON',
  'demo.sign.not-json': 'Das ist kein JSON.',
  'demo.sign.button': 'Handy fragen',
  'demo.proof.title': 'Dein Nachweis',
  'demo.proof.valid': 'Auf dieser Seite geprüft: Die Signatur ist gültig.',
  'demo.proof.invalid': 'Die Signatur ist nicht gültig.',
  'demo.proof.other':
    'Der Dienst hat die Signatur geprüft, sie ist gültig. Diese Seite selbst prüft nur Signaturen von Nimiq und von einfachen Ed25519-Schlüsseln.',
  'demo.proof.details': 'Was signiert wurde, und die Signatur',
  'demo.proof.key': 'Öffentlicher Schlüssel',
  'demo.proof.signature': 'Signatur',
  'demo.proof.payload': 'Inhalt',
  'demo.session.phone': 'Angemeldet {time}, mit einem Handy.',
  'demo.session.device': 'Angemeldet {time}, auf diesem Gerät.',
  'demo.session.text':
    'Die Sitzung steht in einem Cookie, das Skripte nicht lesen können. Lädst du die Seite neu, bist du noch angemeldet.',
  'demo.footer':
    'Die Signatur einer Wallet beweist, dass jemand einen Schlüssel besitzt, und sonst nichts. Was diese Person darf, entscheidet die Anwendung.',
}
