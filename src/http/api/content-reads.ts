// Reads of stored content: megabytes that are unsealed, parsed and written anew in the thread that serves all requests.
import type { Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Answer, Exchange, ScopedRoute } from "../exchange/route.ts";

/** Two at a time leave room between them for everybody else's requests. One key may have 1,000 requests open. */
const contentReads = new AccountTurns({ maxRunning: 2, maxOfAccount: 4_000, what: "reads of stored content" });

/** Returns the handler that waits for the turn of its account. */
export function inTurn(handle: ScopedRoute["handle"]): ScopedRoute["handle"] {
  return (exchange, principal) => answerInTurn(exchange, principal, async () => await handle(exchange, principal));
}

/** Reads content for a request in the turn of its account. */
export function readInTurn<Value>(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  read: () => Promise<Value>,
): Promise<Value> {
  return contentReads.run(principal.account.id, read, req.clientGone);
}

/** Waits for the turn of the account. */
export function answerInTurn(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  work: () => Promise<Answer>,
  turns = contentReads,
): Promise<Answer> {
  return turns.run(principal.account.id, work, req.clientGone);
}
