/**
 * Style sheet of the element. Its colours follow the background behind it, or the page's `color-scheme`. Its edge and
 * padding are inside the shadow root, because a page's reset of all elements (`*`) beats `:host`. Custom properties to
 * change it: --countersign-color, --countersign-background, --countersign-border, --countersign-accent,
 * --countersign-on-accent, --countersign-error, --countersign-radius, --countersign-qr-size.
 */
export const elementStyle = `
:host {
  --cs-line: var(--countersign-border, color-mix(in srgb, currentcolor 18%, transparent));
  --cs-radius: var(--countersign-radius, 10px);
  --cs-error: var(--countersign-error, color-mix(in srgb, #d6404c 75%, currentcolor));
  display: block;
  max-width: 22rem;
  text-align: center;
  font: 1rem/1.5 system-ui, sans-serif;
}
[part='card'] {
  display: flow-root;
  color: var(--countersign-color, CanvasText);
  background: var(--countersign-background, Canvas);
  border: 1px solid var(--cs-line);
  border-radius: calc(var(--cs-radius) * 1.6);
  padding: 1.5rem;
}
:host([hidden]), [hidden] { display: none !important; }
p { margin: 0; }
/* Lines of a language without spaces end between phrases, in browsers that know them. */
:host(:lang(ja)) { line-break: strict; word-break: auto-phrase; }
/* The element may lack the language of a page that is written from right to left. */
:host(:dir(rtl)) { --start: right; }
:host(:dir(rtl)) :is(p, label, button, li) { unicode-bidi: plaintext; }
:host(:dir(rtl)) [part='code'] { direction: ltr; unicode-bidi: isolate; }
svg { display: block; }
[part='stage'] { display: grid; justify-items: center; gap: 0.25rem; margin-bottom: 0.75rem; }
[part='qr'] {
  width: min(100%, var(--countersign-qr-size, 17rem));
  aspect-ratio: 1;
  overflow: hidden;
  border-radius: var(--cs-radius);
}
.bone { background: color-mix(in srgb, currentcolor 9%, transparent); }
@media (prefers-reduced-motion: no-preference) {
  .bone { animation: wait 1s ease-in-out infinite alternate; }
}
@keyframes wait { to { opacity: 0.5; } }
.unsaid { visibility: hidden; }
[part='picture'] { width: 3.5rem; margin-top: 0.5rem; }
[part='picture'].good { color: var(--countersign-accent, #1a8754); }
[part='picture'] svg { stroke: currentcolor; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round; }
[part='status'] { font-weight: 600; min-height: 1.5em; text-wrap: balance; }
[part='status'].long { min-height: 3em; }
[part='account'] { direction: ltr; }
[part='account'], [part='countdown'], [part='code-label'] {
  font-size: 0.875rem;
  font-variant-numeric: tabular-nums;
  color: color-mix(in srgb, currentcolor 75%, transparent);
}
[part='steps'] {
  display: grid;
  gap: 0.5rem;
  width: fit-content;
  margin: 0.75rem auto 0;
  padding: 0;
  list-style: none;
  counter-reset: step;
  text-align: var(--start, start);
}
[part='steps'] li { display: flex; align-items: center; gap: 0.75rem; counter-increment: step; line-height: 1.35; }
[part='steps'] li::before {
  content: counter(step);
  flex: none;
  width: 1.625rem;
  border-radius: 50%;
  background: color-mix(in srgb, currentcolor 9%, transparent);
  font-size: 0.875rem;
  font-weight: 600;
  line-height: 1.625rem;
  text-align: center;
}
[part='caption'], [part='caption'] > [part='code-box'] {
  display: flex;
  flex-wrap: wrap;
  justify-content: center;
  align-items: baseline;
  gap: 0 0.75rem;
}
[part='caption'] { justify-self: stretch; min-height: 1.75rem; }
[part='caption'] > [part='code-box'] { column-gap: 0.5rem; }
[part='code'] { font-weight: 700; font-variant-numeric: tabular-nums; }
[part='caption'] [part='code'] { font-size: 1.75rem; line-height: 1; }
[part='stage'] > [part='code-box'] {
  padding: 0.75rem clamp(0.25rem, 10vw - 1rem, 2.5rem);
  border-radius: var(--cs-radius);
  background: color-mix(in srgb, currentcolor 7%, transparent);
}
[part='stage'] > [part='code-box'] [part='code'] { font-size: 3rem; line-height: 1.2; letter-spacing: 0.06em; }
.spoken {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
.entering { display: flex; flex-direction: column; }
.entering [part='status'] { order: -1; margin-bottom: 0.75rem; }
[part='return-code-error'] { color: var(--cs-error); font-weight: 600; }
[part='return-code-error']:empty { margin-top: -0.5rem; }
[part='return-code'] { display: grid; gap: 0.5rem; width: 100%; }
.digits {
  position: relative;
  display: grid;
  grid-template-columns: repeat(3, minmax(0, 2.75rem)) 0.25rem repeat(3, minmax(0, 2.75rem));
  gap: 0.375rem;
  justify-content: center;
  direction: ltr;
}
.digits span {
  display: grid;
  place-items: center;
  height: 3.25rem;
  border: 1px solid var(--countersign-border, color-mix(in srgb, currentcolor 50%, transparent));
  border-radius: calc(var(--cs-radius) * 0.8);
  font-size: 1.5rem;
  font-weight: 600;
  font-variant-numeric: tabular-nums;
}
.digits span:nth-of-type(4) { grid-column: 5; }
.digits input {
  position: absolute;
  inset: 0;
  z-index: 1;
  width: 100%;
  margin: 0;
  padding: 0;
  border: 0;
  font-size: 1rem;
  opacity: 0;
}
.digits input:focus ~ .next { outline: 3px solid var(--countersign-accent, Highlight); outline-offset: 1px; }
.digits input[aria-invalid] ~ span { border: 2px solid var(--cs-error); }
.digits input:read-only ~ span { opacity: 0.6; }
[part='actions'] { display: flex; flex-wrap: wrap; gap: 0.5rem; justify-content: center; margin-top: 1rem; }
[part='actions']:not(:has(> :not([hidden]))) { display: none; }
button {
  min-height: 2.75rem;
  padding: 0.4rem 1rem;
  font: inherit;
  font-size: 0.9375rem;
  font-weight: 600;
  line-height: 1.3;
  color: inherit;
  background: transparent;
  border: 1px solid var(--cs-line);
  border-radius: var(--cs-radius);
  cursor: pointer;
}
button:hover { background: color-mix(in srgb, currentcolor 8%, transparent); }
button:focus-visible { outline: 3px solid var(--countersign-accent, Highlight); outline-offset: 2px; }
[part='submit'], .main {
  color: var(--countersign-on-accent, var(--countersign-background, Canvas));
  background: var(--countersign-accent, var(--countersign-color, CanvasText));
  border-color: transparent;
}
:is([part='submit'], .main):hover {
  background: color-mix(in srgb, var(--countersign-accent, var(--countersign-color, CanvasText)) 88%, transparent);
}
[part='device'] { display: grid; gap: 0.75rem; }
[part='device']:not(:first-child) { margin-top: 1.25rem; padding-top: 1.25rem; border-top: 1px solid var(--cs-line); }
[part='device']:first-child {
  margin-bottom: 1.25rem; padding-bottom: 1.25rem; border-bottom: 1px solid var(--cs-line);
}
[part='this-device'] { width: 100%; min-height: 3rem; font-size: 1rem; text-wrap: balance; }
[part='device-status'] { text-align: var(--start, start); }
[part='device-status']:empty { display: none; }
`
