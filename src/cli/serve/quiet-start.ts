// Gives back what only starting needed, once the server has nothing to do: compiled code is the most of it.
import type { RunningServer } from "../../server/serve.ts";

const lookMs = 1_000;
/** Monitors ask a server now and then that nobody uses. */
const mostRequests = 10;
/** A server that is busy from its start needs the code that it has. */
const mostLooks = 60;

/**
 * Calls `release` once, after the first quiet second of the first minute. It holds everything up for some 50 ms, and
 * code that is needed again is compiled again: nothing for a server that is in use.
 */
export function releaseOnceQuiet(server: Pick<RunningServer, "requests">, release = () => Bun.shrink()): void {
  let looks = 0;
  let before = server.requests().ended;
  const timer = setInterval(() => {
    const { ended, open } = server.requests();
    const isQuiet = open === 0 && ended - before < mostRequests;
    before = ended;
    looks++;
    if (isQuiet || looks === mostLooks) clearInterval(timer);
    if (isQuiet) release();
  }, lookMs);
  timer.unref();
}
