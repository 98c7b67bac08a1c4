import type { StartOrderOptions } from '../../../shared/orders.ts'
import type { OrderRecord, OrdersByRecipe, RecipeName } from '../order.ts'
import { inbox } from './inbox.ts'
import { link } from './link.ts'
import { login } from './login.ts'
import type { OrderRules, OrderSubject, Recipe } from './recipe.ts'
import { sign } from './sign.ts'

/** Recipes by their names. */
type Recipes = { readonly [Name in RecipeName]: Recipe<Name> }

const recipes = { login, sign, inbox, link } satisfies Recipes

/** The recipe of a new order. */
export function recipeFor({
  kind,
  inboxUserId,
}: StartOrderOptions): Pick<Recipe<RecipeName>, keyof OrderRules | 'begin'> {
  return kind === 'sign' && inboxUserId !== undefined ? recipes.inbox : recipes[kind]
}

/** Calls a function with the recipe of an order, and with the order as a record of that recipe. */
export function withRecipe<Result>(
  order: OrderRecord,
  use: <Name extends RecipeName>(recipe: Recipe<Name>, order: OrdersByRecipe[Name]) => Result,
): Result {
  switch (order.kind) {
    case 'login':
      return use(recipes.login, order)
    case 'sign':
      return order.inboxUserId === undefined ? use(recipes.sign, order) : use(recipes.inbox, order)
    case 'link':
      return use(recipes.link, order)
  }
}

/** The user and the session that an order is about, as far as it names them. */
export function subjectOf(order: OrderRecord): OrderSubject {
  return withRecipe<OrderSubject>(order, (recipe, order) => recipe.subject(order))
}

/** The rules of an order's recipe. */
export function rulesOf(order: OrderRecord): OrderRules {
  return withRecipe<OrderRules>(order, (recipe) => recipe)
}
