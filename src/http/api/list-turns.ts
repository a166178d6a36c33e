// Limits concurrent reports and lists that read many rows, because SQLite runs on the main thread.
import type { Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Exchange } from "../exchange/route.ts";

/**
 * Runs one read at a time, followed by an equally long pause for other requests. One key may have 1,000 open
 * requests.
 */
export const listTurns = new AccountTurns({
  maxRunning: 1,
  maxOfAccount: 4_000,
  what: "reports and lists",
  rests: true,
});

/** Runs `read` when the account has a turn. A long report takes a turn for each piece. */
export function listInTurn<Value>(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  read: () => Promise<Value>,
): Promise<Value> {
  return listTurns.run(principal.account.id, read, req.clientGone);
}
