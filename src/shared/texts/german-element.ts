import type { ElementTexts } from './english-element.ts'

/** Texts of the sign-in on this device in German, without those of the list, which has its own. */
const wallets: ElementTexts['wallets'] = {
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
    'Diese Website nimmt in diesem Netz keine Contract-Wallets an. Wechsle das Netz oder wähle eine andere Wallet.',
  late: 'Das hat zu lange gedauert. Wähle die Wallet noch einmal.',
  demoWallet: 'Demo-Wallet',
}

/** The element's texts in German, loaded on a page in that language. */
export const germanTexts: ElementTexts = {
  starting: 'Einen Moment.',
  created: 'Scanne den Code mit deinem Handy.',
  claimed: 'Ein Handy hat die Anfrage geöffnet.',
  waiting_user: 'Vergleiche den Bestätigungscode und antworte dann auf dem Handy.',
  approved: 'Auf dem Handy bestätigt. Einen Moment.',
  finalized: 'Fertig.',
  rejected: 'Auf dem Handy abgelehnt.',
  cancelled: 'Abgebrochen.',
  expired: 'Der Code ist abgelaufen.',
  reconnecting: 'Verbindung unterbrochen. Neuer Versuch …',
  failed: 'Das hat nicht geklappt.',
  offline: 'Der Anmeldedienst ist nicht erreichbar. Prüfe deine Verbindung.',
  notTrusted: 'Diese Website ist für die Anmeldung hier nicht eingerichtet.',
  busy: 'Zu viele Versuche. Warte einen Moment.',
  qrLabel: 'QR-Code für dein Handy',
  stepCamera: 'Öffne die Kamera deines Handys',
  stepOpen: 'Scanne den Code und öffne die Seite',
  stepApprove: 'Bestätige mit deiner Wallet',
  localOnly: 'Ein Handy kann diesen Code nicht öffnen: Er führt zu {host}, also zu diesem Computer.',
  codeLabel: 'Bestätigungscode',
  answer: 'Mach auf dem Handy weiter. Zeigt es einen Code, gib ihn hier ein.',
  returnCode: 'Bestätigt. Gib den Code ein, den dein Handy zeigt.',
  returnCodeLabel: 'Code auf deinem Handy',
  submit: 'Weiter',
  checking: 'Der Code wird geprüft.',
  wrongCode: 'Das ist nicht der Code auf deinem Handy. Versuche übrig: {tries}.',
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
  thisDevice: 'Wallet auf diesem Gerät verwenden',
  otherDevice: 'Anderes Gerät verwenden',
  scanElsewhere: 'Scanne den Code mit einem anderen Gerät.',
  walletsFailed: 'Die Wallets ließen sich nicht laden. Versuche es noch einmal.',
  wallets,
}
