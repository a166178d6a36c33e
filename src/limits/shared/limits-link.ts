// The way to the shared limits: scripts, the server's time, who else is there, and what dead replicas leave behind.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { RedisConnection } from "../../storage/redis/redis-connection.ts";
import type { WindowTime } from "../limit-answer.ts";
import { type LimitOperation, LimitOperations } from "../limit-operations.ts";
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
   * comes before all that is asked afterwards.
   */
  onMet(meeting: { isEmptied: boolean }): void;
  /** Called when nobody can be asked any more. */
  onAway(): void;
  /** Numbers of the leases that still run. */
  openLeases(): ReadonlySet<number>;
}

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
    if (/^redis_mode:cluster/m.test(info)) throw new Error("Redis Cluster is not supported");
    for (const text of Object.values(limitScripts)) await this.#connection.send("SCRIPT", ["LOAD", text]);
    await this.meet();
  }

  async #meet(): Promise<void> {
    const session = this.#session + 1;
    this.#session = session;
    // Numbers from here on are asked for by the new session.
    const before = this.#nextLease;
    const { born, last, dead } = await this.#beat(String(session));
    const isEmptied = this.#born !== undefined && this.#born !== born;
    this.#born = born;
    if (isEmptied) this.operations.clear();
    this.#options.onMet({ isEmptied });
    this.operations.resume(isEmptied ? 0 : last);
    this.#inBackground(this.#dropUnknown(before));
    this.#inBackground(this.#sweep(dead));
  }

  async #beat(session: string) {
    const answer = await this.#run("beat", [], [session, String(graceMs)]);
    const [micros, live, isNew, born, last, dead] = answer as [number, number, number, string, string, string[]];
    this.#noteTime(micros);
    this.live = live;
    return { isNew: isNew === 1, born, last: Number(last), dead };
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

function withCount([name, ...args]: LimitOperation): string[] {
  return [name, String(args.length), ...args];
}
