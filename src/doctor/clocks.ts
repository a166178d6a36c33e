// Checks clocks: this machine's against other machines', and against its own monotonic clock.
import { maxClockOffsetSeconds } from "../base/clock.ts";
import type { RedisFacts } from "../storage/redis/redis-facts.ts";
import type { Database } from "../storage/sql/database.ts";
import { timeDatabase } from "../storage/sql/database-clock.ts";
import { type Check, type Finding, failure, ok, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";
import type { UpstreamProbes } from "./upstreams.ts";

const warningMs = 2_000;
const failureMs = maxClockOffsetSeconds * 1000;
const steadyMs = 200;
const stepMs = 50;

export function clockChecks(
  { database, databaseUrl, redisUrl }: Subject,
  redis: () => Promise<RedisFacts>,
  upstreams: UpstreamProbes,
): Check[] {
  const ofDatabase = async () => {
    const db: Database | undefined = await database().catch(() => undefined);
    const timed = db && (await timeDatabase(db).catch(() => undefined));
    return clockOf("PostgreSQL", timed?.aheadMs);
  };
  const ofRedis = async () => clockOf("Redis", (await redis().catch(() => undefined))?.aheadMs);
  return [
    { name: "this machine's clock", run: steadiness },
    ...(databaseUrl === undefined ? [] : [{ name: "clock of PostgreSQL", run: ofDatabase }]),
    ...(redisUrl === undefined ? [] : [{ name: "clock of Redis", run: ofRedis }]),
    ...upstreams.map(({ server, probe }) => ({
      name: `clock of ${server.name}`,
      // Another check reports an unreachable server.
      run: async (signal: AbortSignal) => clockOf(server.name, (await probe(signal).catch(() => undefined))?.aheadMs),
    })),
  ];
}

function clockOf(whose: string, aheadMs: number | undefined): Finding | undefined {
  if (aheadMs === undefined) return undefined;
  const name = `clock of ${whose}`;
  const size = Math.abs(aheadMs);
  if (size <= warningMs) return ok(name, "agrees with this machine's clock");
  const seconds = size < 120_000 ? `${(size / 1000).toFixed(1)} s` : `${Math.round(size / 60_000)} minutes`;
  const found = `its clock is ${seconds} ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  const remedy =
    "Synchronise both: timedatectl set-ntp true; chronyc tracking shows the offset. Tokens, sign-ins and limits go by the time.";
  return size > failureMs ? failure(name, found, remedy) : warning(name, found, remedy);
}

/**
 * Checks that the clock is steady. A clock that is being set jumps, or runs faster or slower than the monotonic clock.
 */
async function steadiness(): Promise<Finding> {
  const name = "this machine's clock";
  const before = { wall: Date.now(), monotonic: performance.now() };
  await Bun.sleep(steadyMs);
  const drift = Date.now() - before.wall - (performance.now() - before.monotonic);
  const now = `${new Date().toISOString().slice(0, 19).replace("T", " ")} UTC`;
  if (Math.abs(drift) < stepMs) return ok(name, `${now}, steady`);
  return warning(
    name,
    `${now}; it moved by ${Math.round(drift)} ms more than time went by`,
    "Something sets it in steps: let one program alone, such as chrony, keep it.",
  );
}
