// Returns memory to the system once the server is quiet, as far as the mode allows.

import type { Mode } from "../../config/options.ts";
import { releaseProgramPages } from "../../installation/program-pages.ts";
import type { RunningServer } from "../../server/serve.ts";

const pollMs = 1_000;
/** A server counts as quiet up to this many requests in a second, so that a monitor does not keep it busy. */
const maxQuietRequests = 10;
/**
 * The quiet seconds after a load before memory is returned. A server in use pauses for seconds, and compiling its code
 * again after each pause would cost more than the memory.
 */
const quietPollsAfterLoad = 20;

interface Releases {
  /** Called after the first quiet second of a start. */
  afterStart(): void;
  /** Called after the first 20 quiet seconds that follow a load. */
  afterLoad(): void;
}

/**
 * Production keeps the compiled code: a gateway is quiet most of the time, and without its code each first second after
 * a pause took several times the processor time (docs/adr/0027-memory.md). Development, on a person's own machine,
 * releases the code as well.
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

/** Blocks the event loop for some 50 ms. `Bun.shrink` discards all compiled code. */
function releaseAll(): void {
  Bun.shrink();
  releaseProgramPages();
}
