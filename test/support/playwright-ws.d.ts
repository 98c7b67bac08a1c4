/** The part of playwright's own WebSocket library that the tests in Firefox change. */
declare module 'playwright-core/lib/utilsBundle' {
  interface BundledWebSocket {
    send(message: string, ...rest: unknown[]): void
    emit(event: 'message', data: string, isBinary: boolean): void
  }
  export const ws: { readonly prototype: BundledWebSocket }
}
