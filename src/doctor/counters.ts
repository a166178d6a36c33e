// Checks the Redis or Valkey in which replicas count limits.
import { formatBytes } from "../engines/llama/byte-size.ts";
import type { RedisFacts } from "../storage/redis/redis-facts.ts";
import { reasonOf } from "./examine.ts";
import { type Check, type Finding, type Findings, failure, ok, warning } from "./finding.ts";

const oldestMajor = 7;
const slowRoundTripMs = 5;
const fullPart = 0.9;

export function counterChecks(url: string | undefined, readFacts: () => Promise<RedisFacts>): Check[] {
  if (url === undefined) return [];
  return [{ name: "Redis", run: () => redis(url, readFacts) }];
}

async function redis(url: string, readFacts: () => Promise<RedisFacts>): Promise<Findings> {
  const { host } = new URL(url);
  let facts: RedisFacts;
  try {
    facts = await readFacts();
  } catch (error) {
    return failure("Redis", `${host} cannot be used: ${reasonOf(error)}`, remedyFor(reasonOf(error)));
  }
  return [answers(facts, host), eviction(facts)];
}

function remedyFor(reason: string): string {
  if (/WRONGPASS|NOAUTH|invalid password|authentication/i.test(reason))
    return "Correct user and password in HEADRACE_REDIS_URL: redis://user:password@host:6379/0";
  if (/NOPERM/i.test(reason))
    return "Let the user run TIME, INFO, EVALSHA, SCRIPT, PUBLISH and SUBSCRIBE: ACL SETUSER.";
  return "See that it runs and can be reached from here (redis-cli -u). Until it is back each replica counts its share by itself.";
}

function answers({ name, major, roundTripMs, role, writeRefusal }: RedisFacts, host: string): Finding {
  const found = `${name ?? "it says no version"} at ${host}, ${roundTripMs.toFixed(1)} ms there and back`;
  if (major !== undefined && major < oldestMajor)
    return failure("Redis", found, `Headrace needs Redis ${oldestMajor} or Valkey: update it.`);
  if (role === "slave")
    return failure(
      "Redis",
      `${found}; it is a replica, which takes no writes`,
      "Name the primary in HEADRACE_REDIS_URL.",
    );
  if (writeRefusal !== undefined)
    return failure(
      "Redis",
      `${found}; it takes no writes: ${writeRefusal}`,
      "Mend what it says: memory (maxmemory), its disk (MISCONF), or its replicas. Until then each replica of Headrace counts its share by itself.",
    );
  if (roundTripMs < slowRoundTripMs) return ok("Redis", found);
  return warning("Redis", found, "Put it nearer: every request waits for one answer of it.");
}

function eviction({ evictionPolicy, maxMemory, usedMemory }: RedisFacts): Finding | undefined {
  const name = "Redis memory";
  if (evictionPolicy !== undefined && evictionPolicy !== "noeviction") {
    return warning(
      name,
      `maxmemory-policy is ${evictionPolicy}: a counter that is thrown out is a limit that begins anew`,
      "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file.",
    );
  }
  if (!maxMemory || usedMemory === undefined) return undefined;
  const found = `${formatBytes(usedMemory)} of ${formatBytes(maxMemory)} used`;
  return usedMemory > maxMemory * fullPart
    ? warning(name, found, "Raise maxmemory, or give Headrace a Redis of its own.")
    : ok(name, found);
}
