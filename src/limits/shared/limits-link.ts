// The way to the shared limits: scripts, the server's time, who else is there, and what dead replicas leave behind.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { RedisConnection, runIdOf } from "../../storage/redis/redis-connection.ts";
import type { WindowTime } from "../limit-answer.ts";
import { type LimitOperation, LimitOperations } from "../limit-operations.ts";
import { quotaKeys } from "../limit-plan.ts";
import { limitScripts } from "./limit-scripts.ts";

/** The time that the scripts go by, in a test. */
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
   * The server knows this replica, maybe anew. `isEmptied`: it has forgotten what it was told. What is told in this call
   * comes before all that is asked afterwards. `doubted`: keys of quotas that may be older than what it was told.
   */
  onMet(meeting: { isEmptied: boolean; doubted: readonly string[] }): void;
  /** Called when nobody can be asked any more. */
  onAway(): void;
  /** Numbers of the leases that still run. */
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
/** Silent for so long, a replica counts as dead, and what it holds is dropped with the next beat of another. */
const graceMs = 30_000;
/** Milliseconds that an end waits for what is still to be told. */
const lastWordsMs = 500;

export class LimitsLink {
  readonly operations: LimitOperations;
  /** Replicas that lived at the last beat; undefined where there was none. */
  live: number | undefined;
  readonly #options: LimitsLinkOptions;
  readonly #connection: RedisConnection;
  /** The id of this process: no other ever has the same. */
  readonly #replica = crypto.randomUUID();
  #session = 0;
  #nextLease = 1;
  /** Since when the server remembers, as it says. */
  #born: string | undefined;
  /** The server's process, as it says; undefined where it does not. */
  #process: string | undefined;
  /** The log says that the server does not list its keys. */
  #isUnlisted = false;
  /** The server's clock less the monotonic one of this process. */
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

  /** Resolves after the first try. */
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

  /** The time that it is for the server. */
  windowTime(): WindowTime {
    const { time } = this.#options;
    const aheadSeconds = time ? time.seconds() - Math.floor(time.micros() / 1e6) : 0;
    return { now: this.nowSeconds(), aheadSeconds };
  }

  /** The server's time, as far as it is known; 0 where it is not. */
  nowMicros(): number {
    const { clock, time } = this.#options;
    if (time) return time.micros();
    return this.#aheadMs === undefined ? 0 : Math.floor((clock.monotonicMs() + this.#aheadMs) * 1000);
  }

  /** The server's time at a moment of the monotonic clock. */
  microsAt(monotonicMs: number): number {
    return this.nowMicros() - (this.#options.clock.monotonicMs() - monotonicMs) * 1000;
  }

  /** `lease`: its number, `peek`, or empty for none. Rejects where nobody answers. */
  async admit(keys: readonly string[], lease: string, args: readonly string[]): Promise<number[]> {
    const leases = `${this.#options.prefix}leases:${this.#replica}`;
    // Amounts that were settled a moment ago are there first.
    this.operations.flush();
    const answer = (await this.#run("admit", [leases, ...keys], [this.session, lease, ...args])) as number[];
    if (answer.length > 1) this.#noteTime(answer[1] as number);
    return answer;
  }

  /** `args`: as the script has them, from the number of the lease on. Rejects where nobody answers. */
  async grow(args: readonly string[]): Promise<number[]> {
    // What was settled a moment ago may be what there is to be had.
    this.operations.flush();
    return (await this.#run("grow", [], [this.session, ...args])) as number[];
  }

  /** Makes this replica known again, where the server has forgotten it. */
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

  /** Something is wrong that only the one who asked can see. */
  giveUp(reason: string): void {
    this.#connection.giveUp(reason);
  }

  async close(): Promise<void> {
    clearInterval(this.#beats);
    for (let waited = 0; this.#connection.isUp && this.operations.waiting > 0 && waited < lastWordsMs; waited += 10) {
      await Bun.sleep(10);
    }
    // Others soon drop what a replica holds that did not say that it leaves.
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
    // Numbers from here on are asked for by the new session.
    const before = this.#nextLease;
    const { born, last, dead, upToDate } = await this.#beat(String(session));
    // A server that was started anew, or took the place of another, has what that one last saved or passed on.
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

  /** Throws what is no answer of the server. Without the list, an older copy of the data goes unnoticed. */
  #unlisted(error: unknown): undefined {
    requireRefusal(error);
    if (!this.#isUnlisted) this.#options.log.warn("redis_quotas_unlisted", { reason: error.message });
    this.#isUnlisted = true;
  }

  /** Sent behind what has all quotas read again, so carried out behind it. */
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

  /** Leases that the server has of this replica and that ended, or never began here: nobody got the answer. */
  async #dropUnknown(before: number): Promise<void> {
    const leases = `${this.#options.prefix}leases:${this.#replica}`;
    const known = (await this.#connection.send("HKEYS", [leases])) as string[];
    // Answers that came together with this one have been taken up by then.
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

  /** Unix seconds, as they are for the server. */
  nowSeconds(): number {
    const { clock, time } = this.#options;
    if (time) return time.seconds();
    return this.#aheadMs === undefined ? clock.nowSeconds() : Math.floor(this.nowMicros() / 1e6);
  }

  /** A failure of the work is a loss of the connection. */
  #inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (this.#connection.isUp) this.#connection.giveUp(error instanceof Error ? error.message : "unknown");
    });
  }
}

/** Throws an error that is no refusal by the server, which may forbid or lack a command that the scripts do without. */
function requireRefusal(error: unknown): asserts error is Error {
  if (!(error instanceof Error && "code" in error && error.code === "ERR_REDIS_SERVER_ERROR")) throw error;
}

/** The text as a pattern that matches it alone. */
function globText(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

function withCount([name, ...args]: LimitOperation): string[] {
  return [name, String(args.length), ...args];
}
