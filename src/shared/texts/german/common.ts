import type { common as english } from '../english/common.ts'

export const common: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'gerade eben',
  'time.soon': 'weniger als einer Minute',

  'task.offline': 'Du bist offline. Hier geht es weiter, sobald du wieder online bist.',
  'task.slow': 'Der Dienst antwortet langsam. Neuer Versuch …',
  'task.retry': 'Noch einmal versuchen',

  'notice.NETWORK':
    'Der Anmeldedienst ist nicht erreichbar. Nichts ist verloren. Versuche es, wenn du wieder online bist.',
  'notice.STORE_UNAVAILABLE':
    'Der Dienst ist gerade nicht verfügbar. Nichts ist verloren. Versuche es gleich noch einmal.',
  'notice.SERVER_BUSY': 'Der Dienst ist überlastet. Nichts ist verloren. Versuche es gleich noch einmal.',
  'notice.HOST_UNAVAILABLE': 'Die Anwendung hat nicht geantwortet. Versuche es gleich noch einmal.',
  'notice.CONTRACT_WALLET_NEEDS_RPC':
    'Diese Website nimmt keine Smart-Contract-Wallets in diesem Netzwerk an. Verwende eine andere Wallet.',
  'notice.EVM_RPC_UNAVAILABLE':
    'Deine Smart-Contract-Wallet lässt sich gerade nicht prüfen. Versuche es gleich noch einmal.',
  'notice.RATE_LIMITED': 'Aus deinem Netz kamen zu viele Anfragen. Warte einen Moment und versuche es noch einmal.',
  'notice.contract-checks':
    'Das war der dritte Versuch mit dieser Wallet. Verwende eine andere Wallet, oder hol dir am Computer einen neuen Code.',
  'notice.INTERNAL': 'Der Dienst hatte einen Fehler. Versuche es noch einmal.',
  'notice.WALLET_DECLINED': 'Du hast in deiner Wallet abgelehnt. Es wurde nichts signiert.',
  'notice.WALLET_CLOSED': 'Die Wallet wurde ohne Antwort geschlossen. Es wurde nichts signiert.',
  'notice.WALLET_BLOCKED':
    'Dein Browser hat das Fenster der Wallet blockiert. Erlaube Pop-ups für diese Website und versuche es noch einmal.',
  'notice.WALLET_BUSY':
    'Deine Wallet zeigt schon eine Anfrage. Beantworte zuerst diese Anfrage, dann versuche es noch einmal.',
  'notice.WALLET_FAILED': 'Die Wallet hatte einen Fehler. Es wurde nichts bestätigt.',
  'notice.WALLET_WRONG_KEY':
    'Die Wallet hat einen anderen Schlüssel als den verlangten verwendet. Es wurde nichts bestätigt.',
  'notice.WRONG_WALLET': 'Diese Anfrage ist für eine andere Wallet. Es wurde nichts bestätigt.',
  'notice.SIGNATURE_INVALID': 'Der Dienst hat die Signatur der Wallet nicht angenommen. Es wurde nichts bestätigt.',
  'notice.ORIGIN_NOT_TRUSTED':
    'Diese Website ist für die Anmeldung hier nicht eingerichtet. Bitte sag der Website Bescheid.',
  'notice.LOGIN_REFUSED': 'Diese Wallet darf sich nicht anmelden.',
  'notice.WALLET_TAKEN': 'Diese Wallet hat hier schon ein Konto. Nimm eine, die sich hier noch nicht angemeldet hat.',
  'notice.NETWORK_MISMATCH':
    'Dieses Handy ist nicht im Netz deines Computers. Verbinde es mit demselben WLAN und versuche es noch einmal.',
  'notice.NONCE_EXPIRED': 'Das hat zu lange gedauert. Versuche es noch einmal.',
  'notice.NONCE_NOT_FOUND': 'Das hat zu lange gedauert. Versuche es noch einmal.',
  'notice.SESSION_NOT_FRESH': 'Deine Anmeldung ist zu lange her, um deine Wallets zu ändern.',

  'task.not-listed': 'Diese Wallet steht nicht auf der Liste. Bitte den Betreiber von {app}, sie aufzunehmen.',
  'task.account-unusable':
    'Das Konto auf deinem anderen Gerät lässt sich gerade nicht verwenden. Es wurde nichts hinzugefügt. Frag den Betreiber von {app}.',
  'task.copy-address': 'Adresse kopieren',
  'task.address-copied': 'Adresse kopiert',
  'task.failed': 'Das hat nicht geklappt ({code}).',
}
