/**
 * Style sheet of the element. Its colours follow the page's `color-scheme`. Custom properties to change it:
 * --countersign-background, --countersign-color, --countersign-border, --countersign-accent, --countersign-qr-size.
 */
export const elementStyle = `
:host {
  display: block;
  box-sizing: border-box;
  max-width: 22rem;
  color: var(--countersign-color, CanvasText);
  background: var(--countersign-background, Canvas);
  border: 1px solid var(--countersign-border, color-mix(in srgb, currentcolor 25%, transparent));
  border-radius: 12px;
  padding: 1.25rem;
  text-align: center;
  font: 1rem/1.5 system-ui, sans-serif;
}
:host([hidden]), [hidden] { display: none !important; }
p { margin: 0.5rem 0 0; }
/* The element may lack the language of a page that is written from right to left. */
:host(:dir(rtl)) :is(p, label, button) { unicode-bidi: plaintext; }
svg {
  display: block;
  width: min(100%, var(--countersign-qr-size, 15rem));
  margin: 0 auto;
  border-radius: 6px;
}
[part='steps'] {
  display: grid;
  gap: 0.25rem;
  width: fit-content;
  margin: 0.5rem auto 1rem;
  padding: 0;
  list-style: none;
  counter-reset: step;
  text-align: start;
}
[part='steps'] li { display: flex; align-items: center; gap: 0.5rem; counter-increment: step; }
[part='steps'] li::before { content: counter(step); font-weight: 600; font-variant-numeric: tabular-nums; }
[part='steps'] svg { width: 1.5rem; height: 1.5rem; flex: none; margin: 0; stroke: currentcolor; stroke-width: 1.5; }
[part='hint'] { font-size: 0.9em; text-wrap: balance; }
[part='status'] { font-weight: 600; min-height: 1.5em; text-wrap: balance; }
[part='code'] {
  margin: 0;
  font: 700 2rem/1.2 system-ui, sans-serif;
  font-variant-numeric: tabular-nums;
}
.spoken {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
[part='return-code'] { display: grid; gap: 0.25rem; justify-items: center; margin-top: 0.75rem; }
input {
  box-sizing: border-box;
  width: 100%;
  max-width: 12rem;
  min-height: 3.5rem;
  font: 700 2rem/1.2 ui-monospace, monospace;
  letter-spacing: 0.15em;
  text-align: center;
  color: inherit;
  background: transparent;
  border: 1px solid currentcolor;
  border-radius: 8px;
}
input[aria-invalid] { border-width: 3px; }
input:read-only { opacity: 0.6; }
[part='countdown'] { font-variant-numeric: tabular-nums; }
[part='actions'] { display: flex; flex-wrap: wrap; gap: 0.5rem; justify-content: center; margin-top: 1rem; }
button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid currentcolor;
  border-radius: 8px;
  min-height: 44px;
  padding: 0 1rem;
  cursor: pointer;
}
button:focus-visible, input:focus-visible {
  outline: 3px solid var(--countersign-accent, Highlight);
  outline-offset: 2px;
}
[part='device']:not(:first-child) {
  margin-top: 1.25rem;
  padding-top: 1.25rem;
  border-top: 1px solid var(--countersign-border, color-mix(in srgb, currentcolor 25%, transparent));
}
[part='device']:first-child { margin-bottom: 1.25rem; }
[part='this-device'] { width: 100%; }
[part='device-status']:empty { display: none; }
[part='device-status'] { text-align: start; }
countersign-wallets { margin-top: 0.75rem; }
[part='renew'], [part='submit'] {
  color: var(--countersign-background, Canvas);
  background: var(--countersign-color, CanvasText);
}
`
