// What a Valkey or Redis server says of itself: one short connection, nothing written.
import { RedisClient } from "bun";
import { quickest, type TimedAnswer } from "./database-clock.ts";

export interface RedisFacts extends TimedAnswer {
  /** `Redis` or `Valkey`, and its version; undefined where INFO is not allowed. */
  name: string | undefined;
  major: number | undefined;
  /** `noeviction` and the like. */
  evictionPolicy: string | undefined;
  /** Bytes; 0: none. */
  maxMemory: number | undefined;
  usedMemory: number | undefined;
  role: string | undefined;
}

/** Rejects with what server or socket said, which is never the URL. */
export async function redisFacts(url: string, timeoutMs: number): Promise<RedisFacts> {
  const client = new RedisClient(url, {
    autoReconnect: false,
    enableOfflineQueue: false,
    connectionTimeout: timeoutMs,
  });
  try {
    await client.connect();
    const timed = await quickest(async () => {
      const [seconds, microseconds] = (await client.send("TIME", [])) as [string, string];
      return Number(seconds) * 1000 + Number(microseconds) / 1000;
    });
    const info = await client.send("INFO", []).then(String, () => "");
    const infoOf = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
    const numberOf = (name: string) => {
      const text = infoOf(name);
      return text === undefined ? undefined : Number(text);
    };
    const valkey = infoOf("valkey_version");
    const version = valkey ?? infoOf("redis_version");
    return {
      ...timed,
      name: version === undefined ? undefined : `${valkey === undefined ? "Redis" : "Valkey"} ${version}`,
      major: version === undefined ? undefined : Number(version.split(".")[0]),
      evictionPolicy: infoOf("maxmemory_policy"),
      maxMemory: numberOf("maxmemory"),
      usedMemory: numberOf("used_memory"),
      role: infoOf("role"),
    };
  } finally {
    client.close();
  }
}
