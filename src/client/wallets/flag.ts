/** Sets an ARIA attribute to true, or removes it. Not by its property, which older browsers do not have. */
export function setFlag(element: HTMLElement, name: `aria-${string}`, isSet: boolean): void {
  if (isSet) element.setAttribute(name, 'true')
  else element.removeAttribute(name)
}
