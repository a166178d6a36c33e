// Schedules reports and lists that read many rows of an account: SQLite runs in the thread that serves all requests.
import type { Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Exchange } from "../exchange/route.ts";

/** Runs one read at a time, with as much time for other requests in between. One key may have 1,000 open requests. */
export const listTurns = new AccountTurns({
  maxRunning: 1,
  maxOfAccount: 4_000,
  what: "reports and lists",
  rests: true,
});

/** Waits for the account's turn. A report in pieces takes a turn for each piece. */
export function listInTurn<Value>(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  read: () => Promise<Value>,
): Promise<Value> {
  return listTurns.run(principal.account.id, read, req.clientGone);
}
