// Reads facts of a Valkey or Redis server over one short connection that changes nothing.

import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { RedisClient } from "bun";
import { quickest, type TimedAnswer } from "../sql/database-clock.ts";

export interface RedisFacts extends TimedAnswer {
  /** `Redis` or `Valkey`, with the version. Undefined if the user may not call INFO. */
  name: string | undefined;
  major: number | undefined;
  /** The eviction policy, such as `noeviction`. */
  evictionPolicy: string | undefined;
  /** The memory limit in bytes; 0 means no limit. */
  maxMemory: number | undefined;
  usedMemory: number | undefined;
  role: string | undefined;
  /**
   * The reason why the server refuses writes, in its own words (`OOM …`, `MISCONF …`). Undefined if it accepts them.
   */
  writeRefusal: string | undefined;
}

/** Rejects with the error message of the server or socket, which never contains the URL. */
export async function redisFacts(url: string, timeoutMs: number): Promise<RedisFacts> {
  const client = new RedisClient(url, {
    autoReconnect: false,
    enableOfflineQueue: false,
    connectionTimeout: timeoutMs,
  });
  try {
    await connected(client, url, timeoutMs);
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
      writeRefusal: await writeRefusal(client),
    };
  } finally {
    client.close();
  }
}

/** Appends an empty text to a missing key, which changes nothing. A server accepts this only if it accepts writes. */
async function writeRefusal(client: RedisClient): Promise<string | undefined> {
  try {
    await client.send("SETRANGE", ["headrace:doctor", "0", ""]);
    return undefined;
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    // The user may be restricted to the commands that Headrace needs, so NOPERM says nothing about other writes.
    return /NOPERM/.test(said) ? undefined : said;
  }
}

/**
 * Connects, and throws the server's own error: Bun's client reports only a closed connection, whatever the server said
 * before.
 */
async function connected(client: RedisClient, url: string, timeoutMs: number): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    const refused = await refusalOf(new URL(url), timeoutMs).catch(() => undefined);
    throw refused === undefined ? error : new Error(refused);
  }
}

/**
 * Returns the server's error about user and password, such as `WRONGPASS invalid username-password pair`. Undefined if
 * there is none.
 */
function refusalOf(url: URL, timeoutMs: number): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const address = { host, port: Number(url.port || 6379) };
  const socket = url.protocol === "rediss:" ? connectTls({ ...address, servername: host }) : connectTcp(address);
  const [user, password] = [url.username, url.password].map(decodeURIComponent) as [string, string];
  const credential = user === "" ? [password] : [user, password];
  if (password !== "") socket.write(encoded(["AUTH", ...credential]));
  socket.write(encoded(["PING"]));
  let said = "";
  socket.on("data", (bytes) => {
    said += bytes.toString();
    const refusal = /^-([^\r\n]*)\r\n/m.exec(said)?.[1];
    if (refusal !== undefined || said.includes("+PONG")) resolve(refusal);
  });
  socket.once("error", reject);
  socket.once("close", () => resolve(undefined));
  socket.setTimeout(timeoutMs, () => resolve(undefined));
  return promise.finally(() => socket.destroy());
}

/** Encodes a command in RESP, the protocol of Redis. */
function encoded(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}
