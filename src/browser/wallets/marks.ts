/**
 * Marks of wallets, shown beside their names as `data:` URIs. They belong to their makers, and say which wallet an
 * entry is. Taken from `@rainbow-me/rainbowkit` 2.2.11 (MIT, Copyright 2024 Rainbow) and
 * `@solana/wallet-adapter-solflare` 0.6.34 (Apache-2.0).
 */
export const marks = {
  'nimiq-pay': mark(
    28,
    `<radialGradient id="a" cx="75%" cy="98%" r="100%"><stop stop-color="#ec991c"/><stop offset="1"
stop-color="#e9b213"/></radialGradient><path fill="#1f2348" d="M0 0h28v28H0z"/><path fill="url(#a)" d="M23.7 13.1 19.3
5.5a1.8 1.8 0 0 0-1.6-.9H9.9c-.6 0-1.2.3-1.5.9l-4.3 7.6a1.8 1.8 0 0 0 0 1.8l4.3 7.6c.3.6.9.9 1.5.9h7.8c.7 0 1.3-.3 1.6
-.9l4.4-7.6c.3-.6.3-1.2 0-1.8z"/>`,
  ),
  metamask: mark(
    28,
    `<path fill="#fff" d="M0 0h28v28H0z"/><path fill="#ff5c16" d="m24 23.8-4.8-1.4-3.7 2.2-2.5 0-3.7-2.2-4.8 1.4L3
18.9l1.5-5.5L3 8.8 4.5 3l7.6 4.5h4.4L24 3l1.5 5.8-1.5 4.6 1.5 5.5z"/><path fill="#e34807" d="m9.3 22.4-4.8 1.4L3
18.9h6.3zm3.1-7.7.9 6-1.3-3.3-4.4-1.1 1.7-1.6zm6.8 7.7 4.8 1.4 1.5-4.9H19.2zm-3.1-7.7-.9 6 1.3-3.3 4.4-1.1-1.7-1.6z"/>
<path fill="#ff8d5d" d="m3 18.9 1.5-5.5h3.2l0 2.9 4.4 1.1 1.3 3.3-.7.7-3.3-2.5H3zm22.5 0-1.5-5.5h-3.2l0 2.9-4.4 1.1
-1.3 3.3.7.7 3.3-2.5h6.3zM16.5 7.5h-4.4l-.3 3.1 1.6 10.1h1.9l1.6-10.1z"/><path fill="#661800" d="M4.5 3 3 8.8l1.5
4.6h3.2l4.1-2.8zm7 12.9H10l-.8.8 2.8.7-.6-1.4M24 3l1.5 5.8-1.5 4.6h-3.2l-4.1-2.8zm-7 12.9h1.4l.8.8-2.8.7.6-1.4zm-1.5
6.7.3-1.2-.7-.7h-1.9l-.7.7.3 1.2"/><path fill="#c0c4cd" d="M15.5 22.6v2h-2.5v-2z"/><path fill="#e7ebf6" d="m9.3 22.4
3.7 2.2v-2l-.3-1.2zm9.9 0-3.7 2.2v-2l.3-1.2z"/>`,
  ),
  phantom: mark(
    28,
    `<path fill="#ab9ff2" d="M0 0h28v28H0z"/><path fill="#fffdf8" fill-rule="evenodd" d="M12.1 18.1c-1.2 1.8-3.1 4.1
-5.8 4.1-1.2 0-2.4-.5-2.4-2.7 0-5.6 7.7-14.3 14.8-14.3 4.1 0 5.7 2.8 5.7 6 0 4.1-2.7 8.8-5.3 8.8-.8 0-1.3-.5-1.3-1.2 0
-.2 0-.4.1-.6-.9 1.5-2.6 3-4.3 3-1.2 0-1.8-.7-1.8-1.8 0-.4.1-.8.2-1.2Zm9.6-7.1c0 .9-.5 1.4-1.2 1.4-.6 0-1.2-.5-1.2-1.4
0-.9.5-1.4 1.2-1.4.6 0 1.2.5 1.2 1.4Zm-3.5 0c0 .9-.6 1.4-1.2 1.4-.6 0-1.2-.5-1.2-1.4 0-.9.5-1.4 1.2-1.4.6 0 1.2.5 1.2
1.4Z"/>`,
  ),
  solflare: mark(
    50,
    `<path fill="#ffef46" d="M0 0h50v50H0z"/><path fill="#02050a" d="M24.2 26.4l2.5
-2.4 4.6 1.5c3 1 4.5 2.8 4.5 5.4 0 2-.8 3.3-2.2 4.9l-.5.5.2-1.2c.7-4.3-.6-6.1-4.7-7.4l-4.3-1.4h0ZM18.1 11.8l12.5 4.2
-2.7 2.6-6.5-2.2c-2.2-.8-3-2-3.3-4.5v-.1h0ZM17.3 33.1l2.8-2.7 5.3 1.8c2.8.9 3.8 2.1 3.5 5.2l-11.7-4.2h0ZM13.7 20.9c0
-.8.4-1.5 1.1-2.2.8 1.1 2 2 4.1 2.7l4.4 1.5-2.5 2.4-4.3-1.4c-2-.7-2.8-1.7-2.8-3M26.8 42.9c9.2-6.1 14.1-10.2 14.1-15.3
0-3.4-2-5.3-6.4-6.7l-3.3-1.1 9.1-8.8-1.8-2-2.7 2.4-12.8-4.2c-4 1.3-9 5.1-9 8.9 0 .4 0 .8.2 1.3-3.3 1.9-4.6 3.6-4.6 5.8
0 2 1.1 4.1 4.5 5.2l2.8.9-9.5 9.1 1.8 2 3-2.7 14.7 5.2h0Z"/>`,
  ),
  coinbase: mark(
    28,
    `<path fill="#2c5ff6" d="M0 0h28v28H0z"/><path fill="#fff" fill-rule="evenodd" d="M14 23.8c5.4 0 9.8-4.4 9.8
-9.8S19.4 4.2 14 4.2 4.2 8.6 4.2 14s4.4 9.8 9.8 9.8Zm-2.5-13a.8.8 0 0 0-.8.8v4.9c0 .4.3.8.8.8h4.9a.8.8 0 0 0 .8
-.8v-4.9a.8.8 0 0 0-.8-.8h-4.9Z"/>`,
  ),
  trust: mark(
    28,
    `<path fill="#fff" d="M0 0h28v28H0z"/><path fill="#0500ff" d="M6 7.6 13.5 5v17.9C8.2 20.5 6 15.9 6 13.3V7.6Z"/>
<path fill="url(#a)" d="M22 7.6 13.5 5v17.9c6-2.4 8.5-7 8.5-9.5V7.6Z"/><linearGradient id="a" x1="19.8" x2="14.1"
y1="3.8" y2="22.9" gradientUnits="userSpaceOnUse"><stop offset=".08" stop-color="#0094ff"/><stop offset=".16"
stop-color="#48ff91"/><stop offset=".42" stop-color="#0094ff"/><stop offset=".9" stop-color="#0500ff"/></linearGradient>`,
  ),
} as const

/** An image of this side as a `data:` URI. */
function mark(side: number, content: string): string {
  const image = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${side} ${side}">${content}</svg>`
  return `data:image/svg+xml,${encodeURIComponent(image)}`
}
