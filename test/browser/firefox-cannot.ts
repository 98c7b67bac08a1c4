import { beforeAll, beforeEach, expect, type RunnerTask } from 'vitest'

/** The reason of tests that pass now and then, and so are left out. */
const unsteady = 'the driver mostly waits longer than the test for the page of an application on the device'

/**
 * Tests that fail in Firefox, by file and full name, and why. Looked at with TEST_BROWSER=firefox. The list may only
 * shrink: a listed test that passes fails the run, as does a name that no test has.
 */
const cannot: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'test/browser/account.test.ts': {
    'the account page > has a way back to the application > to a connected application that the browser comes from':
      'the driver sends no Referer of its own',
  },
  'test/browser/element-wallets.test.ts': {
    '<countersign-sign-in> with a wallet on this device > is loaded from where the element came from, and again after a failure':
      'the console names the failed load, which the test takes for a fault',
  },
  'test/browser/first-scan.test.ts': {
    'a new user > who has no clipboard gets the link as text to select':
      'the field does not select its text on focus: the page may not be the active one',
    'a new user > on a phone gets a code for another device on request, and can open its link on the phone itself':
      'no phone is emulated',
    'a new user > is offered none on https, even by a service that does not know that a proxy has put it there':
      'on a page that the test answers itself, the text stays hidden: cause not found',
  },
  'test/browser/hub.test.ts': {
    'with the Nimiq Hub > in a window of its own, > a user signs in: not if they cancel or leave, and with whichever account they choose there':
      'a window that a page opens is not followed',
    'with the Nimiq Hub > in a window of its own, > a user approves: not if they cancel or leave, and with whichever account they choose there':
      'a window that a page opens is not followed',
    'with the Nimiq Hub > in a window of its own, > that answers after the request expired, nothing is approved, and the page says so':
      'a window that a page opens is not followed',
  },
  'test/browser/issuer-page.test.ts': Object.fromEntries(
    [
      'stays for an application on the device, and opens it again',
      ...['en-GB', 'de-DE'].flatMap((locale) =>
        ['opened in', 'declined for'].map(
          (how) => `in ${locale} > ${how} an application on this device names site and time, and leads on`,
        ),
      ),
    ].map((name) => [`the page of the issuer > ${name}`, unsteady]),
  ),
  'test/browser/react.test.ts': {
    'an application of React in Chromium > signs in with a wallet, and tells an outage from a sign-out':
      'the console names the failed load, which the test takes for a fault',
  },
  'test/browser/return-code.test.ts': {
    'a desktop that takes return codes > needs no code once the phone let it be remembered, for either kind of order, until it is forgotten':
      'the browser ends in the first of these tests',
    'a desktop that takes return codes > is another computer for every browser, although it presents the public key of a known one':
      'the browser ends in the first of these tests',
    'a desktop that takes return codes > is signed out by the phone that approved it, and no longer known':
      'the browser ends in the first of these tests',
  },
  'test/browser/session-ends.test.ts': {
    'a page and its session > a signed-out visit leaves no error in the console':
      'a failed request is no line of the console that playwright passes on',
  },
  'test/browser/sign-in-page.test.ts': {
    'on the sign-in page, > a phone signs the application’s user in; only the base path is needed, nothing fails and nothing moves':
      'the driver adds a style for a picture, which the page’s policy refuses',
  },
  'test/browser/wallet-chooser.test.ts': {
    '<countersign-wallets> in Chromium > lists wallets of both kinds; the one that is chosen signs, asked in the user gesture':
      'a page that the test serves itself has no crypto.randomUUID',
    '<countersign-wallets> in Chromium > no announcement keeps a later one from being heard, loads anything or becomes markup':
      'a page that the test serves itself has no crypto.randomUUID',
    '<countersign-wallets> in Chromium > looks right with long and right-to-left names, in German, light, dark and narrow':
      'a page that the test serves itself has no crypto.randomUUID',
  },
  'test/browser/wallet-hub.test.ts': {
    'the Nimiq Hub, at another origin > signs in a window of its own': 'a window that a page opens is not followed',
    'the Nimiq Hub, at another origin > left by the back button has signed nothing':
      'the way back is not reported as a navigation',
  },
}

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from it.
beforeAll(({}, { file }) => {
  if (process.env.TEST_BROWSER !== 'firefox') return
  const path = file.name
  const expected = cannot[path] ?? {}
  const listed = testsOf(file.tasks).filter(({ fullTestName }) => fullTestName in expected)
  for (const test of listed) test.fails = expected[test.fullTestName] !== unsteady
  expect(listed.map(({ fullTestName }) => fullTestName).sort()).toEqual(Object.keys(expected).sort())
})

beforeEach(({ task, skip }) => {
  const reason = cannot[task.file.name]?.[task.fullTestName]
  skip(process.env.TEST_BROWSER === 'firefox' && reason === unsteady, reason)
})

function testsOf(tasks: readonly RunnerTask[]): Extract<RunnerTask, { type: 'test' }>[] {
  return tasks.flatMap((task) => (task.type === 'suite' ? testsOf(task.tasks) : [task]))
}
