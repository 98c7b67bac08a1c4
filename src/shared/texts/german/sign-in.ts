import type { signIn as english } from '../english/sign-in.ts'
import { texts } from '../german-element.ts'
import { elementTexts } from '../page-texts.ts'

export const signIn: Readonly<Record<keyof typeof english, string>> = {
  'wallet.choose': 'Wallet wählen',
  'wallet.apps': 'In deiner Wallet fortsetzen',
  'wallet.use': 'Weiter mit {wallet}',
  'wallet.other': 'Ändern',
  'wallet.another': 'Andere Wallet wählen',
  'wallet.for-another': 'Verwende {address}. {wallet} ist eine andere Wallet.',
  'wallet.looking': 'Suche nach Wallets …',
  'wallet.none': 'In diesem Browser wurde keine Wallet gefunden.',
  'wallet.none.others': 'Keine Wallet-Erweiterung gefunden. Du kannst trotzdem verwenden:',
  'wallet.none.kind': 'Dafür brauchst du eine Wallet der Art {kind}. Dieser Browser hat keine.',
  'wallet.none.account': 'Öffne diese Seite in einem Browser mit deiner anderen Wallet.',
  'wallet.list': 'Liste der Wallets',
  'wallet.elsewhere': 'öffnet ihre eigene Website',
  'wallet.demo': 'Demo-Wallet',
  'wallet.demo.about': 'Zum Testen, keine echte',
  'wallet.window': '{wallet} öffnet sich, wenn du bestätigst. Wähle dort die Adresse.',
  'wallet.asked': 'Bestätige in {wallet}.',

  'sign-in.title': 'Anmelden',
  'sign-in.text': 'Ohne Passwort: Deine Wallet signiert eine einmalige Nachricht für {host}.',
  'sign-in.wanted': 'Verwende die Wallet {address}.',
  'sign-in.wanted.other': 'Verlangt ist eine andere Wallet: {address}.',
  'sign-in.done.title': 'Du bist angemeldet',
  'sign-in.done.continue': 'Weiter',
  'sign-in.done.other': 'Abmelden und andere Wallet verwenden',
  'sign-in.not-kept':
    'Dieser Browser hat das Cookie der Anmeldung blockiert. Erlaube Cookies für {host} und versuche es noch einmal.',
  'sign-in.lan': 'Zum Testen mit einem Handy starte mit {command}',
  'sign-in.open-here': 'Hier öffnen',
  'sign-in.open-here.hint': 'In einem neuen Tab. Komm danach in diesen zurück.',
  'sign-in.link': 'Anmeldelink',

  ...elementTexts(texts),
}
