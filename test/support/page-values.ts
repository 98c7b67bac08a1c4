/** What the server gave the script of a page. */
// biome-ignore lint/suspicious/noExplicitAny: each page has its own.
export function pageValues(html: string): any {
  const json = /name="countersign-values" content="([^"]*)"/.exec(html)?.[1] ?? '{}'
  return JSON.parse(json.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))))
}
