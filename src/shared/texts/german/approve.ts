import type { approve as english } from '../english/approve.ts'

export const approve: Readonly<Record<keyof typeof english, string>> = {
  'page.title': 'Anfrage prüfen',

  'start.title': 'Eine Anfrage wartet auf dich',
  'start.text': 'Prüfe die Angaben, bevor du etwas bestätigst.',
  'start.button': 'Weiter',
  'start.not-me': 'Nicht ich',
  'start.hint': 'Mach nur weiter, wenn du den Code gerade von deinem eigenen Computer gescannt hast.',
  'start.hint.link': 'Mach nur weiter, wenn du das gerade auf einem anderen Gerät von dir begonnen hast.',

  'continue.eyebrow': 'Aus einem anderen Browser',
  'continue.title': 'Hier fortsetzen?',
  'continue.text': 'Im anderen Browser kannst du dann nur noch abbrechen.',
  'continue.hint': 'Mach nur weiter, wenn du diese Seite gerade selbst aus deinem anderen Browser geöffnet hast.',
  'continue.done': 'Fortgesetzt aus einem anderen Browser',

  'network.same': 'Im selben Netz wie dieses Handy',
  'network.other': 'In einem anderen Netz, etwa über mobile Daten',

  'payload.title': 'Was du signierst',
  'payload.empty': 'leer',
  'payload.none': 'keine Einträge',
  'payload.no-name': 'ohne Namen',
  'payload.unread': 'Zum Bestätigen bis zum Ende lesen. Werte: {count}',

  'compare.question': 'Zeigt dein Computer diesen Code?',
  'compare.hint': 'Zeigt er einen anderen oder keinen Code, dann bestätige nicht.',

  'code.before': 'Danach bekommst du einen Code für {origin}. Gib ihn nicht weiter.',
  'code.eyebrow': 'Auf diesem Gerät bestätigt',
  'code.title': 'Gib diesen Code nur auf {origin} ein',
  'code.hint': 'Gib diesen Code nicht weiter. Warst du das nicht? Brich ab.',
  'code.good-for': 'Läuft in {time} ab',
  'code.stop': 'Abbrechen',

  'remember.label': 'Diesen Computer merken',
  'remember.hint': '90 Tage lang kein Code nötig. Nur wenn es dein eigener ist.',

  'wallet.none.phone': 'Mach im Browser deiner Wallet-App weiter: Tippe auf „{button}“.',
  'wallet.none.computer': 'Verwende einen Browser mit Wallet: Tippe auf „{button}“.',

  'hand-over.button': 'In anderem Browser fortsetzen',
  'hand-over.label': 'Öffne diesen Link im anderen Browser',
  'hand-over.hint':
    'Der Link gilt einmal und nur eine Minute. Gib ihn nicht weiter: Wer ihn öffnet, kann für dich bestätigen.',
  'hand-over.copy': 'Link kopieren',
  'hand-over.copied': 'Kopiert',
  'hand-over.share': 'Teilen',

  'outcome.waiting': 'Warte auf deinen Computer …',
  'outcome.waiting.link': 'Warte auf dein anderes Gerät …',
  'outcome.offline': 'Du bist offline. Sobald du wieder online bist, steht hier, was dein Computer gemacht hat.',
  'outcome.approved.title': 'Bestätigt',
  'outcome.approved.text': 'Auf deinem Computer geht es von selbst weiter. Du kannst diese Seite schließen.',
  'outcome.approved.not-me': 'Warst du das nicht? Abbrechen',
  'outcome.login.title': 'Dein Computer ist angemeldet',
  'outcome.login.with': 'Angemeldet mit',
  'outcome.login.text': 'Du kannst diese Seite schließen.',
  'outcome.login.not-me': 'Warst du das nicht? Computer abmelden',
  'outcome.sign.title': 'Signiert',
  'outcome.sign.text': 'Die Website hat die Signatur deiner Wallet. Du kannst diese Seite schließen.',
  'outcome.link.title': 'Deine Wallet ist hinzugefügt',
  'outcome.link.text':
    'Ab jetzt öffnet sie dieses Konto. Melde dich zur Probe einmal mit ihr an. Du kannst diese Seite schließen.',
  'outcome.link.not-me': 'Nicht dein Konto? Wallet entfernen',
  'outcome.inbox.approved.text':
    'Die Website, die gefragt hat, macht von selbst weiter. Du kannst diese Seite schließen.',
  'outcome.inbox.not-me': 'Anders überlegt? Abbrechen',
  'outcome.inbox.waiting': 'Warte auf die Website …',
  'outcome.inbox.title': 'Die Website hat deine Bestätigung',
  'outcome.inbox.text':
    'Sie hat die Signatur deiner Wallet für diese Anfrage bekommen. Du kannst diese Seite schließen.',
  'outcome.moved.title': 'In einem anderen Browser fortgesetzt',
  'outcome.moved.wallet': 'In deiner Wallet fortgesetzt',
  'outcome.moved.text': 'Beantworte die Anfrage dort. Hier kannst du sie nur noch abbrechen.',

  'ending.declined.title': 'Abgelehnt',
  'ending.declined.text': 'Es wurde nichts weitergegeben. Du kannst diese Seite schließen.',
  'ending.left.title': 'Du hast nicht weitergemacht',
  'ending.left.text': 'Es wurde nichts weitergegeben. Du kannst diese Seite schließen.',
  'ending.stopped.title': 'Abgebrochen',
  'ending.stopped.text': 'Es wurde nichts weitergegeben. Du kannst diese Seite schließen.',
  'ending.session-ended.title': 'Der Computer ist abgemeldet',
  'ending.session-ended.text': 'Er kann dein Konto nicht mehr verwenden. Du kannst diese Seite schließen.',
  'ending.session-gone.title': 'Die Sitzung war schon beendet',
  'ending.session-gone.text': 'Niemand ist angemeldet. Du kannst diese Seite schließen.',
  'ending.wallet-removed.title': 'Die Wallet ist entfernt',
  'ending.wallet-removed.text': 'Sie öffnet dieses Konto nicht mehr. Du kannst diese Seite schließen.',
  'ending.wallet-stays.title': 'Es wurde nichts entfernt',
  'ending.wallet-stays.text':
    'Die Wallet wurde nicht durch diese Anfrage hinzugefügt, oder sie ist die einzige dieses Kontos. Sieh im Konto nach deinen Wallets.',
  'ending.too-late.title': 'Das kannst du hier nicht mehr rückgängig machen',
  'ending.too-late.text': 'Ist es nicht dein Computer, melde dich auf deinem Gerät an und beende seine Sitzung dort.',
  'ending.signature-given.title': 'Zum Abbrechen ist es zu spät',
  'ending.signature-given.text':
    'Der Computer hat die Signatur schon. Ist es nicht deiner, sag der Website Bescheid, die gefragt hat.',
  'ending.wrong-return-codes.title': 'Drei falsche Codes wurden eingegeben',
  'ending.wrong-return-codes.text':
    'Die Anfrage wurde abgebrochen, und es wurde nichts weitergegeben. Warst du das nicht, hat es jemand anderes versucht. Hol dir am Computer einen neuen Code, um es noch einmal zu versuchen.',
  'ending.code-late.title': 'Der Code wurde nicht rechtzeitig eingegeben',
  'ending.code-late.text': 'Niemand ist angemeldet. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.not-finished.title': 'Dein Computer wurde nicht rechtzeitig fertig',
  'ending.not-finished.text':
    'Es wurde nichts weitergegeben. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.link-incomplete.title': 'Dieser Link ist unvollständig',
  'ending.link-incomplete.text':
    'Ein Teil des Links fehlt. Manche Apps kürzen Links. Scanne den Code am Computer mit der Kamera deines Handys und geh von dort weiter zu deiner Wallet.',
  'ending.link-used.title': 'Dieser Link wurde schon verwendet',
  'ending.link-used.text':
    'Er gilt einmal und nur eine Minute. Geh zurück in den anderen Browser und hol dir dort einen neuen.',
  'ending.expired.title': 'Diese Anfrage ist abgelaufen',
  'ending.expired.text': 'Es wurde nichts signiert. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.expired-signing.title': 'Die Anfrage lief ab, während deine Wallet signierte',
  'ending.expired-signing.text':
    'Es wurde nichts bestätigt. Fragt deine Wallet noch, dann lehne dort ab. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.not-found.title': 'Diese Anfrage ist vorbei',
  'ending.not-found.text':
    'Sie ist schon länger vorbei, oder es gab sie hier nie. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.cancelled.title': 'Auf deinem Computer abgebrochen',
  'ending.cancelled.text': 'Es ist nichts passiert. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.rejected.title': 'Diese Anfrage wurde abgelehnt',
  'ending.rejected.text':
    'Es wurde nichts weitergegeben. Hol dir am Computer einen neuen Code und versuche es noch einmal.',
  'ending.claimed.title': 'Diese Anfrage ist auf einem anderen Handy offen',
  'ending.claimed.text':
    'Oder in einem anderen Tab dieses Handys. Warst du das nicht, brich die Anfrage am Computer ab.',
  'ending.approved.title': 'Diese Anfrage wurde schon bestätigt',
  'ending.approved.text': 'Warst du das nicht, brich sie sofort am Computer ab.',
  'ending.finalized.title': 'Diese Anfrage ist erledigt',
  'ending.finalized.text':
    'Sie wurde bestätigt und verwendet. Warst du das nicht? Melde dich auf deinem Gerät an und beende die Sitzung dort.',
  'ending.token-invalid.title': 'Dieser Link ist ungültig',
  'ending.token-invalid.text': 'Er passt nicht zur Anfrage. Scanne den Code am Computer noch einmal.',
  'ending.inbox-expired.title': 'Diese Anfrage ist abgelaufen',
  'ending.inbox-expired.text':
    'Es wurde nichts bestätigt. Wird sie noch gebraucht, kann die Website noch einmal fragen.',
  'ending.inbox-expired-signing.title': 'Die Anfrage lief ab, während deine Wallet signierte',
  'ending.inbox-expired-signing.text': 'Es wurde nichts bestätigt. Fragt deine Wallet noch, lehne dort ab.',
  'ending.inbox-not-finished.title': 'Deine Bestätigung wurde nicht rechtzeitig verwendet',
  'ending.inbox-not-finished.text':
    'Die Website hat nicht geantwortet. Wird sie noch gebraucht, kann die Website noch einmal fragen.',
  'ending.inbox-over.title': 'Diese Anfrage ist vorbei',
  'ending.inbox-over.text':
    'Sie wurde beantwortet oder zurückgezogen, ist abgelaufen oder für ein anderes Konto. Du kannst diese Seite schließen.',
  'ending.inbox-cancelled.title': 'Diese Anfrage wurde zurückgezogen',
  'ending.inbox-cancelled.text':
    'Die Website, die gefragt hat, braucht sie nicht mehr. Du kannst diese Seite schließen.',
  'ending.inbox-rejected.title': 'Diese Anfrage wurde abgelehnt',
  'ending.inbox-rejected.text':
    'Sie wurde in einem anderen Browser von dir abgelehnt. Du kannst diese Seite schließen.',
  'ending.inbox-approved.title': 'Diese Anfrage wurde schon bestätigt',
  'ending.inbox-approved.text':
    'Sie wurde mit einer Wallet deines Kontos bestätigt. Warst du das nicht, sag es der Website, die gefragt hat.',
  'ending.inbox-signed.title': 'Zum Abbrechen ist es zu spät',
  'ending.inbox-signed.text':
    'Die Website hat die Signatur schon. Wolltest du nicht bestätigen, sag es der Website, die gefragt hat.',
  'ending.inbox': 'Deine Anfragen',
  'ending.account': 'Dein Konto',
}
