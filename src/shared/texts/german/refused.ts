import type { refused as english } from '../english/refused.ts'

export const refused: Readonly<Record<keyof typeof english, string>> = {
  'refused.title': 'Du kannst diese Seite nicht öffnen',
  'refused.group': 'Diese Seite von {app} ist für Mitglieder von {groups}. Du bist angemeldet mit:',
  'refused.group.hint': 'Wenn du Zugang brauchst, schick diese Wallet dem Betreiber von {app}.',
  'refused.origin': 'Diese Anfrage kam von einer anderen Website. Öffne {host} selbst und versuche es noch einmal.',
  'refused.signed-out.title': 'Du bist abgemeldet',
  'refused.signed-out': 'Melde dich an und versuche es noch einmal.',
  'refused.sign-in': 'Anmelden',
  'refused.copy': 'Diese Wallet kopieren',
  'refused.copied': 'Kopiert',
  'refused.other-wallet': 'Andere Wallet verwenden',
}
