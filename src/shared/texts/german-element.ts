import type { ChooserTexts } from './chooser.ts'
import type { ElementTexts } from './english-element.ts'

/** The list of wallets in German. */
export const germanTexts: ChooserTexts = {
  looking: 'Suche nach Wallets …',
  choose: 'Wähle deine Wallet.',
  none: 'In diesem Browser wurde keine Wallet gefunden.',
  noneButOthers: 'Keine Wallet-Erweiterung gefunden. Du kannst trotzdem verwenden:',
  noneOnComputer:
    'Installiere eine für diesen Browser und lade die Seite neu, oder verwende eine Wallet auf deinem Handy.',
  noneOnPhone: 'Öffne diese Seite im Browser deiner Wallet-App.',
  noWallet: 'Ich habe keine Wallet',
  getWallet:
    'Eine Wallet ist eine kostenlose App, die deinen Schlüssel verwahrt und für dich signiert: Installiere eine davon und lade diese Seite neu.',
  list: 'Wallets',
  elsewhere: 'öffnet ihre eigene Website',
  demo: 'Zum Ausprobieren, keine echte',
  apps: 'In deiner Wallet-App öffnen',
  openIn: 'In {name} öffnen',
  opening: 'Einen Moment …',
  openAgain: 'Wenn sich die App nicht geöffnet hat, tippe noch einmal. Vielleicht ist sie nicht installiert.',
  openFailed: 'Das hat nicht geklappt. Versuche es noch einmal.',
}

/** The sign-in on this device in German, with the list of wallets. */
const wallets: ElementTexts['wallets'] = {
  ...germanTexts,
  asking: 'Bestätige in {wallet}.',
  verifying: 'Einen Moment.',
  declined: 'Du hast in deiner Wallet abgelehnt. Wähle sie noch einmal, um es erneut zu versuchen.',
  closed: 'Die Wallet wurde ohne Antwort geschlossen. Wähle sie noch einmal, um es erneut zu versuchen.',
  blocked:
    'Dein Browser hat das Fenster der Wallet blockiert. Erlaube Pop-ups für diese Website und wähle die Wallet noch einmal.',
  answerFirst:
    'Deine Wallet zeigt schon eine Anfrage. Beantworte zuerst diese Anfrage, dann wähle die Wallet noch einmal.',
  switched:
    'Das Konto oder das Netz in der Wallet hat sich geändert. Wähle die Wallet noch einmal, um dich damit anzumelden.',
  walletFailed: 'Die Wallet hat nicht signiert. Prüfe, ob sie entsperrt ist, und wähle sie noch einmal.',
  notAccepted: 'Diese Website nimmt solche Wallets nicht an. Wähle eine andere.',
  notAllowed: 'Diese Wallet darf sich hier nicht anmelden.',
  wrongNetwork:
    'Diese Website nimmt in diesem Netz keine Smart-Contract-Wallets an. Wechsle das Netz oder wähle eine andere Wallet.',
  late: 'Das hat zu lange gedauert. Wähle die Wallet noch einmal.',
  demoWallet: 'Demo-Wallet',
}

/** The element in German. */
export const texts: ElementTexts = {
  starting: 'Ein Code wird erstellt …',
  loading: 'Einen Moment.',
  renewed: 'Hier ist ein neuer Code. Scanne ihn mit deinem Handy.',
  created: 'Scanne den Code mit deinem Handy.',
  claimed: 'Ein Handy hat die Anfrage geöffnet.',
  waiting_user: 'Prüfe, ob beide Codes gleich sind, und bestätige dann auf deinem Handy.',
  approved: 'Auf dem Handy bestätigt. Einen Moment.',
  finalized: 'Du bist angemeldet.',
  signed: 'Signiert.',
  rejected: 'Auf dem Handy abgelehnt.',
  cancelled: 'Abgebrochen.',
  expired: 'Der Code ist abgelaufen.',
  reconnecting: 'Verbindung unterbrochen. Neuer Versuch …',
  failed: 'Das hat nicht geklappt.',
  offline: 'Der Anmeldedienst ist nicht erreichbar. Prüfe deine Verbindung.',
  notTrusted: 'Diese Website ist für die Anmeldung hier nicht eingerichtet.',
  notFound: 'Unter dieser Adresse antwortet kein Anmeldedienst.',
  busy: 'Zu viele Versuche. Warte einen Moment.',
  qrLabel: 'QR-Code für dein Handy',
  codeLabel: 'Bestätigungscode',
  stepCamera: 'Öffne die Kamera deines Handys',
  stepOpen: 'Scanne den Code und öffne die Seite',
  stepApprove: 'Bestätige mit deiner Wallet',
  localOnly: 'Ein Handy kann diesen Code nicht öffnen: Er führt zu {host}, also zu diesem Computer.',
  answer: 'Weiter auf dem Handy. Zeigt es einen Code, gib ihn hier ein.',
  returnCode: 'Bestätigt. Gib den Code ein, den dein Handy zeigt.',
  returnCodeLabel: 'Code auf deinem Handy',
  submit: 'Weiter',
  checking: 'Der Code wird geprüft.',
  wrongCode: 'Das ist nicht der Code auf deinem Handy. Noch {tries} Versuche.',
  lastTry: 'Das ist nicht der Code auf deinem Handy. Noch 1 Versuch.',
  codesUsedUp: 'Drei falsche Codes: Die Anfrage wurde abgebrochen. Fang neu an.',
  tooLate: 'Der Code wurde nicht rechtzeitig eingegeben. Fang neu an.',
  stopped: 'Auf dem Handy abgebrochen.',
  keyLost: 'Die Daten dieses Browsers wurden inzwischen gelöscht. Fang neu an.',
  expiresIn: 'Läuft in {time} ab',
  copy: 'Link kopieren',
  copied: 'Link kopiert. Öffne ihn auf deinem Handy.',
  copyFailed: 'Der Link ließ sich nicht kopieren.',
  cancel: 'Abbrechen',
  renew: 'Neuen Code anzeigen',
  tryAgain: 'Noch einmal versuchen',
  thisDevice: 'Wallet auf diesem Gerät verwenden',
  otherDevice: 'Anderes Gerät verwenden',
  scanElsewhere: 'Scanne den Code mit einem anderen Gerät.',
  walletsFailed: 'Die Wallets ließen sich nicht laden. Versuche es noch einmal.',
  wallets,
}
