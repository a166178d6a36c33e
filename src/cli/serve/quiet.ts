// Gives memory back once the server has nothing to do: what only its start needed, and what only a load that is over did.

import { releaseProgramPages } from "../../installation/program-pages.ts";
import type { RunningServer } from "../../server/serve.ts";

const lookMs = 1_000;
/** Monitors ask a server now and then that nobody uses. */
const mostRequests = 10;
/** Pauses in between are usual where a server is used, and it would have to compile its code again after each. */
const quietLooksAfterLoad = 20;

/**
 * Calls `release` after the first quiet second of a start, and after the first 20 of each time in which the server was
 * busy. It holds everything up for some 50 ms, and code that is needed again is compiled again.
 */
export function releaseWhenQuiet(server: Pick<RunningServer, "requests">, release = releaseMemory): void {
  let looksLeft = 1;
  let before = server.requests().ended;
  const timer = setInterval(() => {
    const { ended, open } = server.requests();
    const isQuiet = open === 0 && ended - before < mostRequests;
    before = ended;
    if (!isQuiet) looksLeft = quietLooksAfterLoad;
    else if (looksLeft > 0 && --looksLeft === 0) release();
  }, lookMs);
  timer.unref();
}

/** Compiled code is the most of it. */
function releaseMemory(): void {
  Bun.shrink();
  releaseProgramPages();
}
