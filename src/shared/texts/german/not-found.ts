import type { notFound as english } from '../english/not-found.ts'

export const notFound: Readonly<Record<keyof typeof english, string>> = {
  'not-found.title': 'Seite nicht gefunden',
  'not-found.text': 'Unter dieser Adresse gibt es auf {host} keine Seite. Prüfe den Link oder geh zur Startseite.',
  'not-found.button': 'Zur Startseite',
}
