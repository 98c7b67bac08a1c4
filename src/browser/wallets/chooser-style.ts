/**
 * Style sheet of the chooser. Its colours follow the page's `color-scheme`. Custom properties to change it:
 * --countersign-color, --countersign-background, --countersign-border, --countersign-accent, --countersign-radius.
 */
export const chooserStyle = `
:host {
  display: block;
  color: var(--countersign-color, CanvasText);
  font: 1rem/1.4 system-ui, sans-serif;
  text-align: var(--start, start);
}
:host([hidden]), [hidden] { display: none !important; }
:host(:dir(rtl)) { --start: right; }
:host(:dir(rtl)) :is(p, bdi, summary, .about) { unicode-bidi: plaintext; }
ul { list-style: none; margin: 0.5rem 0 0; padding: 0; display: grid; gap: 0.5rem; }
p { margin: 0; }
[part='status'] { font-size: 0.9375rem; }
[part='hint'] { margin-top: 0.5rem; }
[part='hint'], [part='note'], .about { color: color-mix(in srgb, currentcolor 75%, transparent); font-size: 0.875rem; }
.unsaid { visibility: hidden; }
[part='apps-title'] { margin-top: 1rem; font-weight: 600; }
button, a {
  box-sizing: border-box;
  display: flex;
  align-items: center;
  gap: 0.75rem;
  width: 100%;
  min-height: 3.5rem;
  padding: 0.5rem 0.75rem;
  font: inherit;
  color: inherit;
  text-align: var(--start, start);
  text-decoration: none;
  background: var(--countersign-background, transparent);
  border: 1px solid var(--countersign-border, color-mix(in srgb, currentcolor 35%, transparent));
  border-radius: var(--countersign-radius, 10px);
  cursor: pointer;
  touch-action: manipulation;
}
button:hover, a:hover { background: color-mix(in srgb, currentcolor 6%, var(--countersign-background, transparent)); }
button:focus-visible, a:focus-visible { outline: 3px solid var(--countersign-accent, Highlight); outline-offset: 2px; }
button[aria-disabled] { cursor: default; opacity: 0.7; }
[aria-current] {
  border-color: var(--countersign-accent, currentcolor);
  box-shadow: inset 0 0 0 1px var(--countersign-accent, currentcolor);
}
[aria-current]::after { content: '\\2713' / ''; margin-inline-start: auto; }
.demo { border-style: dashed; }
[part='help'] { margin-top: 0.75rem; font-size: 0.9375rem; }
summary { min-height: 1.5rem; font-weight: 600; cursor: pointer; }
summary:focus-visible { outline: 3px solid var(--countersign-accent, Highlight); outline-offset: 2px; }
.icon {
  flex: none;
  display: grid;
  place-items: center;
  width: 2.5rem;
  height: 2.5rem;
  overflow: hidden;
  border-radius: 8px;
  font-weight: 600;
  background: color-mix(in srgb, currentcolor 10%, transparent);
}
.icon::before { content: attr(data-letter); }
.icon img { width: 100%; height: 100%; object-fit: contain; }
.names { min-width: 0; display: grid; overflow: hidden; }
.names > * { overflow: hidden; overflow-wrap: anywhere; }
[part='name'], [part='store'], [part='app'] { font-weight: 600; }
[part='name'] { max-height: 2.8em; }
@media (max-width: 15rem) {
  button, a { gap: 0.5rem; padding-inline: 0.5rem; }
  .icon { width: 2rem; height: 2rem; }
  [part='name'] { max-height: 4.2em; }
}
`
