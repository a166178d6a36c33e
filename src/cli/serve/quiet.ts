// Returns memory to the operating system once the server is quiet. The mode decides which memory.

import type { Mode } from "../../config/options.ts";
import { releaseProgramPages } from "../../installation/program-pages.ts";
import type { RunningServer } from "../../server/serve.ts";

const pollMs = 1_000;
/**
 * The server counts as quiet if fewer requests than this ended in a second and none is open. A monitor's few requests
 * thus do not keep it busy.
 */
const maxQuietRequests = 10;
/**
 * Seconds that the server must be quiet after a load before it returns memory. A busy server also pauses for seconds,
 * and compiling its code again after each pause would cost too much.
 */
const quietPollsAfterLoad = 20;

interface Releases {
  /** Called after the first quiet second since the start. */
  afterStart(): void;
  /** Called after 20 quiet seconds in a row that follow a load. */
  afterLoad(): void;
}

/**
 * Returns memory after quiet seconds. In production, the compiled code stays in memory: without it, the first second
 * after each pause took several times the processor time (docs/adr/0027-memory.md). In development, on a person's own
 * machine, the compiled code is released too.
 */
export function releaseWhenQuiet(
  server: Pick<RunningServer, "requests">,
  mode: Mode,
  { afterStart, afterLoad }: Releases = mode === "production" ? releasesInProduction : releasesInDevelopment,
): void {
  let release = afterStart;
  let pollsLeft = 1;
  let before = server.requests().ended;
  const timer = setInterval(() => {
    const { ended, open } = server.requests();
    const isQuiet = open === 0 && ended - before < maxQuietRequests;
    before = ended;
    if (!isQuiet) {
      release = afterLoad;
      pollsLeft = quietPollsAfterLoad;
    } else if (pollsLeft > 0 && --pollsLeft === 0) {
      release();
    }
  }, pollMs);
  timer.unref();
}

const releasesInProduction: Releases = { afterStart: releaseProgramPages, afterLoad: () => {} };
const releasesInDevelopment: Releases = { afterStart: releaseAll, afterLoad: releaseAll };

/** Discards all compiled code and returns memory. `Bun.shrink` blocks the event loop for some 50 ms. */
function releaseAll(): void {
  Bun.shrink();
  releaseProgramPages();
}
