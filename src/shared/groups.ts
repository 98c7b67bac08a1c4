/** Form of a group's name in a people file. */
const groupForm = /^[A-Za-z0-9_.:-]{1,64}$/

/** Most groups of a person, and of a list that someone has to be in one of. */
const maxGroups = 32

/** Whether any of the groups is wanted. */
export function isInAny(groups: readonly string[], wanted: readonly string[]): boolean {
  return wanted.some((group) => groups.includes(group))
}

/** Whether a value is a list of names of groups. */
export function areGroups(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= maxGroups &&
    value.every((group) => typeof group === 'string' && groupForm.test(group))
  )
}

/** What a list of groups has to be, for messages. */
export const groupsExpected: string = `a list of at most ${maxGroups} names such as "staff", \
each of 1 to 64 letters, digits, "_", ".", ":" and "-"`
