import type { TestRunner } from '../../../src/integrations/testing/index.ts'

/** A test runner that runs nothing: it keeps the tests that a suite declares, by their names, to be run one by one. */
export function collect(declare: (runner: TestRunner) => void): ReadonlyMap<string, () => Promise<void>> {
  const tests = new Map<string, () => Promise<void>>()
  let group = ''
  declare({
    describe(name, define) {
      const outer = group
      group += `${name} `
      define()
      group = outer
    },
    test(name, run) {
      // The group at the top has the subject's name, which does not matter here.
      const fact = `${group}${name}`.replace(/^.*?:\s*/, '')
      if (tests.has(fact)) throw new Error(`two tests are called ${fact}`)
      tests.set(fact, run)
    },
  })
  return tests
}

/** An object that does as another does, but for some of its methods. */
export function altered<T extends object>(target: T, changes: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      const value = Reflect.get(name in changes ? changes : target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
