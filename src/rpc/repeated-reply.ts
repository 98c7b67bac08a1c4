/** The forms in which replies that come again and again were written, by the name of the form. */
const forms = new WeakMap<object, Map<string, unknown>>()

/** Marks a reply that a handler gives again and again, and that nothing changes: it is written once in each form. */
export function repeatedReply<Reply extends object>(reply: Reply): Reply {
  forms.set(reply, new Map())
  return reply
}

/** A reply as `write` writes it in a form. One of {@link repeatedReply} is written only if it was not written in that form before. */
export function writtenAs<Reply extends object, Written>(
  form: string,
  reply: Reply,
  write: (reply: Reply) => Written,
): Written {
  const written = forms.get(reply)
  if (written === undefined) return write(reply)
  if (!written.has(form)) written.set(form, write(reply))
  return written.get(form) as Written
}
