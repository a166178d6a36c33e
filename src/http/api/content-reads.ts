// Limits concurrent reads of stored content, because decrypting and parsing megabytes blocks the main thread.
import type { Principal } from "../../domain/principal.ts";
import { AccountTurns } from "../../policy/account-turns.ts";
import type { Answer, Exchange, ScopedRoute } from "../exchange/route.ts";

/** Runs two reads at a time, so that other requests get time too. A single key may have 1,000 open requests. */
const contentReads = new AccountTurns({ maxRunning: 2, maxOfAccount: 4_000, what: "reads of stored content" });

/** Wraps a handler so that it waits for its account's turn to read stored content. */
export function inTurn(handle: ScopedRoute["handle"]): ScopedRoute["handle"] {
  return (exchange, principal) => answerInTurn(exchange, principal, async () => await handle(exchange, principal));
}

/** Waits for the account's turn, then runs `read`. */
export function readInTurn<Value>(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  read: () => Promise<Value>,
): Promise<Value> {
  return contentReads.run(principal.account.id, read, req.clientGone);
}

/**
 * Waits for the account's turn, then runs `work`. The turn ends once the answer is ready, even if the client reads the
 * answer slowly.
 */
export function answerInTurn(
  { req }: { req: Pick<Exchange["req"], "clientGone"> },
  principal: Principal,
  work: () => Promise<Answer>,
  turns = contentReads,
): Promise<Answer> {
  return turns.run(principal.account.id, work, req.clientGone);
}
