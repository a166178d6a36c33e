// The connection to the shared limit store (Redis or Valkey): runs scripts, sends heartbeats, and drops reservations of
// dead replicas.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { RedisConnection, runIdOf } from "../../storage/redis/redis-connection.ts";
import type { WindowTime } from "../limit-answer.ts";
import { type LimitOperation, LimitOperations } from "../limit-operations.ts";
import { quotaKeys } from "../limit-plan.ts";
import { limitScripts } from "./limit-scripts.ts";

/** Replaces the server's clock in tests. */
export interface ServerTime {
  micros(): number;
  seconds(): number;
}

export interface LimitsLinkOptions {
  url: string;
  prefix: string;
  clock: Clock;
  log: Log;
  time: ServerTime | undefined;
  deadlineMs: number | undefined;
  retryMs: number | undefined;
  /**
   * Called when the server has registered this replica. `isEmptied`: the server has lost its data. `doubted`: Redis
   * keys of quotas whose usage may be outdated. Operations sent in this call precede all later requests.
   */
  onMet(meeting: { isEmptied: boolean; doubted: readonly string[] }): void;
  /** Called when the server becomes unreachable. */
  onAway(): void;
  /** Returns the numbers of the leases that are open in this process. */
  openLeases(): ReadonlySet<number>;
}

type BeatAnswer = [
  ...[micros: number, live: number, isNew: number, born: string, last: string, dead: string[], upToDate: string],
];
type ScriptName = keyof typeof limitScripts;
const digests = Object.fromEntries(
  Object.entries(limitScripts).map(([name, text]) => [name, new Bun.CryptoHasher("sha1").update(text).digest("hex")]),
) as Record<ScriptName, string>;

const beatMs = 5_000;
/** Milliseconds without a heartbeat after which a replica counts as dead, and another one drops its reservations. */
const graceMs = 30_000;
/** Milliseconds for which closing waits for pending operations. */
const lastWordsMs = 500;

export class LimitsLink {
  readonly operations: LimitOperations;
  /** Number of live replicas at the last heartbeat; undefined before the first heartbeat. */
  live: number | undefined;
  readonly #options: LimitsLinkOptions;
  readonly #connection: RedisConnection;
  /** Unique id of this process. */
  readonly #replica = crypto.randomUUID();
  #session = 0;
  #nextLease = 1;
  /** When the server's data began to exist, as the server reports it. It changes if the data is lost. */
  #born: string | undefined;
  /** Id of the server's process, as the server reports it; undefined if it reports none. */
  #process: string | undefined;
  /** True if the log already says that the server forbids listing its keys. */
  #isUnlisted = false;
  /** The server's clock minus this process's monotonic clock, in milliseconds. */
  #aheadMs: number | undefined;
  #meeting: Promise<void> | undefined;
  #beats: ReturnType<typeof setInterval> | undefined;

  constructor(options: LimitsLinkOptions) {
    this.#options = options;
    this.#connection = new RedisConnection({
      url: options.url,
      log: options.log,
      purpose: "limits",
      deadlineMs: options.deadlineMs,
      retryMs: options.retryMs,
      onConnect: () => this.#greet(),
      onAway: () => {
        this.operations.pause();
        options.onAway();
      },
    });
    this.operations = new LimitOperations({
      connection: this.#connection,
      apply: (first, operations) =>
        this.#run("apply", [], [String(first), String(operations.length), ...operations.flatMap(withCount)]),
    });
  }

  /** Resolves after the first connection attempt. */
  async start(): Promise<void> {
    await this.#connection.start();
    this.#beats = setInterval(() => this.#inBackground(this.beat()), beatMs);
    this.#beats.unref();
  }

  get reason(): string {
    return this.#connection.reason;
  }

  get session(): string {
    return String(this.#session);
  }

  newLease(): number {
    return this.#nextLease++;
  }

  /** Returns the server's current time. */
  windowTime(): WindowTime {
    const { time } = this.#options;
    const aheadSeconds = time ? time.seconds() - Math.floor(time.micros() / 1e6) : 0;
    return { now: this.nowSeconds(), aheadSeconds };
  }

  /** Returns the server's time in microseconds; 0 if it is unknown. */
  nowMicros(): number {
    const { clock, time } = this.#options;
    if (time) return time.micros();
    return this.#aheadMs === undefined ? 0 : Math.floor((clock.monotonicMs() + this.#aheadMs) * 1000);
  }

  /** Converts a monotonic time of this process to the server's microseconds. */
  microsAt(monotonicMs: number): number {
    return this.nowMicros() - (this.#options.clock.monotonicMs() - monotonicMs) * 1000;
  }

  /**
   * Runs the script that admits a request. `lease` is the number of the lease, `peek`, or empty for none. Rejects if no
   * answer arrives.
   */
  async admit(keys: readonly string[], lease: string, args: readonly string[]): Promise<number[]> {
    const leases = `${this.#options.prefix}leases:${this.#replica}`;
    // Send settled amounts first, so that the script counts them.
    this.operations.flush();
    const answer = (await this.#run("admit", [leases, ...keys], [this.session, lease, ...args])) as number[];
    if (answer.length > 1) this.#noteTime(answer[1] as number);
    return answer;
  }

  /**
   * Runs the script that enlarges a reservation. `args` begin with the number of the lease. Rejects if no answer
   * arrives.
   */
  async grow(args: readonly string[]): Promise<number[]> {
    // Send settled amounts first, because they may free what this reservation needs.
    this.operations.flush();
    return (await this.#run("grow", [], [this.session, ...args])) as number[];
  }

  /** Registers this replica at the server, at first and after the server has lost its data. */
  meet(): Promise<void> {
    this.#meeting ??= this.#meet().finally(() => {
      this.#meeting = undefined;
    });
    return this.#meeting;
  }

  async beat(): Promise<void> {
    if (!this.#connection.isUp) return;
    const { isNew, dead } = await this.#beat("");
    if (isNew) await this.meet();
    await this.#sweep(dead);
  }

  /** Closes the connection, because the caller has found a fault. */
  giveUp(reason: string): void {
    this.#connection.giveUp(reason);
  }

  async close(): Promise<void> {
    clearInterval(this.#beats);
    for (let waited = 0; this.#connection.isUp && this.operations.waiting > 0 && waited < lastWordsMs; waited += 10) {
      await Bun.sleep(10);
    }
    // Ignore a failure: other replicas will drop this replica's reservations.
    if (this.#connection.isUp && this.operations.waiting === 0) await this.#run("leave", [], []).catch(() => {});
    this.#connection.close();
  }

  async #greet(): Promise<void> {
    const info = String(await this.#connection.send("INFO", ["server"]));
    const version = /^redis_version:(\d+)/m.exec(info)?.[1];
    if (Number(version) < 7) throw new Error(`Redis 7 or later is needed, this is ${version}`);
    this.#process = runIdOf(info);
    if (/^redis_mode:cluster/m.test(info)) throw new Error("Redis Cluster is not supported");
    for (const text of Object.values(limitScripts)) await this.#connection.send("SCRIPT", ["LOAD", text]);
    await this.meet();
  }

  async #meet(): Promise<void> {
    const session = this.#session + 1;
    this.#session = session;
    // Leases with lower numbers are from before this registration.
    const before = this.#nextLease;
    const { born, last, dead, upToDate } = await this.#beat(String(session));
    // After a restart or failover, the server may have lost the latest changes that were sent to it.
    const isDoubted = this.#process !== undefined && this.#process !== upToDate;
    const listed = isDoubted ? await this.#quotas().catch((error: unknown) => this.#unlisted(error)) : undefined;
    const isEmptied = this.#born !== undefined && this.#born !== born;
    this.#born = born;
    if (isEmptied) this.operations.clear();
    this.#options.onMet({ isEmptied, doubted: listed ?? [] });
    this.operations.resume(isEmptied ? 0 : last);
    if (listed) this.#inBackground(this.#noteProcess());
    this.#inBackground(this.#dropUnknown(before));
    this.#inBackground(this.#sweep(dead));
  }

  async #beat(session: string) {
    const answer = await this.#run("beat", [], [session, String(graceMs)]);
    const [micros, live, isNew, born, last, dead, upToDate] = answer as BeatAnswer;
    this.#noteTime(micros);
    this.live = live;
    return { isNew: isNew === 1, born, last: Number(last), dead, upToDate };
  }

  async #quotas(): Promise<string[]> {
    const found = new Set<string>();
    let cursor = "0";
    do {
      const asked = [cursor, "MATCH", `${globText(quotaKeys(this.#options.prefix))}*`, "COUNT", "1000"];
      const [next, keys] = (await this.#connection.send("SCAN", asked)) as [string, string[]];
      for (const key of keys) found.add(key);
      cursor = next;
    } while (cursor !== "0");
    return [...found];
  }

  /** Accepts that the server forbids listing keys; throws any other error. Outdated quotas then stay unnoticed. */
  #unlisted(error: unknown): undefined {
    requireRefusal(error);
    if (!this.#isUnlisted) this.#options.log.warn("redis_quotas_unlisted", { reason: error.message });
    this.#isUnlisted = true;
  }

  /**
   * Stores the id of the server's process. Sent after the operations that reload all quotas, so that it takes effect
   * after them.
   */
  async #noteProcess(): Promise<void> {
    await this.#connection.send("SET", [`${this.#options.prefix}run`, this.#process ?? ""]).catch(requireRefusal);
  }

  async #sweep(dead: readonly string[]): Promise<void> {
    for (const replica of dead) {
      let cursor = "0";
      do cursor = String(await this.#run("sweep", [], [replica, cursor, String(graceMs)]));
      while (cursor !== "0");
    }
  }

  /** Releases leases at the server that are no longer open here, or whose answer was lost. */
  async #dropUnknown(before: number): Promise<void> {
    const leases = `${this.#options.prefix}leases:${this.#replica}`;
    const known = (await this.#connection.send("HKEYS", [leases])) as string[];
    // Wait one tick, so that other answers in the same packet are handled first.
    await Bun.sleep(0);
    const open = this.#options.openLeases();
    for (const id of known) {
      const number = Number(id);
      if (number < before && !open.has(number)) this.operations.add("release", id, "0", "0", "0", "0");
    }
  }

  #run(name: ScriptName, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const { prefix, time } = this.#options;
    const common = [prefix, this.#replica, time ? String(Math.round(time.micros())) : ""];
    return this.#connection.send("EVALSHA", [digests[name], String(keys.length), ...keys, ...common, ...args]);
  }

  #noteTime(micros: number): void {
    this.#aheadMs = micros / 1000 - this.#options.clock.monotonicMs();
  }

  /** Returns the server's time in Unix seconds; this machine's time if it is unknown. */
  nowSeconds(): number {
    const { clock, time } = this.#options;
    if (time) return time.seconds();
    return this.#aheadMs === undefined ? clock.nowSeconds() : Math.floor(this.nowMicros() / 1e6);
  }

  /** Runs work in the background; a failure counts as a lost connection. */
  #inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (this.#connection.isUp) this.#connection.giveUp(error instanceof Error ? error.message : "unknown");
    });
  }
}

/** Throws the error unless the server refused the command: an optional command may be forbidden or missing. */
function requireRefusal(error: unknown): asserts error is Error {
  if (!(error instanceof Error && "code" in error && error.code === "ERR_REDIS_SERVER_ERROR")) throw error;
}

/** Escapes the text for a Redis glob pattern. */
function globText(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

function withCount([name, ...args]: LimitOperation): string[] {
  return [name, String(args.length), ...args];
}
