// Schedules reads of stored content, because megabytes are unsealed, parsed and serialised in the thread that serves
// all requests.
import type { Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Answer, Exchange, ScopedRoute } from "../exchange/route.ts";

/** Two reads run at a time, which leaves time for other requests. One key may have 1,000 open requests. */
const contentReads = new AccountTurns({ maxRunning: 2, maxOfAccount: 4_000, what: "reads of stored content" });

/** Returns a handler that waits for its account's turn. */
export function inTurn(handle: ScopedRoute["handle"]): ScopedRoute["handle"] {
  return (exchange, principal) => answerInTurn(exchange, principal, async () => await handle(exchange, principal));
}

/** Reads content for a request when its account has a turn. */
export function readInTurn<Value>(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  read: () => Promise<Value>,
): Promise<Value> {
  return contentReads.run(principal.account.id, read, req.clientGone);
}

/**
 * Answers a request when its account has a turn. The turn ends when the answer is ready: an answer that a slow client
 * has not read is charged to the memory account of its key.
 */
export function answerInTurn(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  work: () => Promise<Answer>,
  turns = contentReads,
): Promise<Answer> {
  return turns.run(principal.account.id, work, req.clientGone);
}
