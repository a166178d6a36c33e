// Limits concurrent reports and lists. They read many rows, and SQLite runs on the main thread.
import type { Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Exchange } from "../exchange/route.ts";

/**
 * Runs one read at a time. After each read, a pause of about the same length leaves time for other requests. A single
 * key may have 1,000 open requests.
 */
export const listTurns = new AccountTurns({
  maxRunning: 1,
  maxOfAccount: 4_000,
  what: "reports and lists",
  rests: true,
});

/** Waits for the account's turn, then runs `read`. A long report waits for a turn for each piece. */
export function listInTurn<Value>(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  read: () => Promise<Value>,
): Promise<Value> {
  return listTurns.run(principal.account.id, read, req.clientGone);
}
