/** What comes of a value: at once if it is there, and else when it comes. A promise for what is there would cost a turn of its own. */
export function after<Value, Next>(value: Value | Promise<Value>, next: (value: Value) => Next): Next | Promise<Next> {
  return value instanceof Promise ? value.then(next) : next(value)
}
