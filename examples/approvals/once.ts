/**
 * The option `remember` over a table that all processes share, of PostgreSQL or SQLite:
 * create table given_out (order_id text primary key, until bigint not null)
 */
export function rememberIn(query: (text: string, values: unknown[]) => Promise<{ readonly rowCount: number | null }>) {
  return async (orderId: string, until: number): Promise<boolean> => {
    const statement = 'insert into given_out values ($1, $2) on conflict do nothing'
    return (await query(statement, [orderId, until])).rowCount === 1
  }
}
