// The ledger after the death of its process: no settled request is lost, and none is counted twice.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onEachDatabase, type TestDatabase } from "../../tests/support/databases.ts";
import { long } from "../../tests/support/long.ts";
import { systemClock } from "../base/clock.ts";
import type { Log, LogFields } from "../base/log.ts";
import type { LedgerEntry, UsageBegin, UsageEnd } from "../domain/usage/usage.ts";
import type { Database } from "../storage/sql/database.ts";
import { SpoolLedger } from "./ledger.ts";
import { recoverSpool } from "./ledger-recovery.ts";
import { frameHeader } from "./spool-format.ts";
import { openUsageWriter, type UsageWriter } from "./usage/usage-writer.ts";

/** The number of times that each of two concurrent processes is killed. */
const deaths = long ? 10 : 5;

let opened: TestDatabase;
let root: string;
let directory: string;
let db: Database;
let writer: UsageWriter;
let logged: { event: string; fields: LogFields | undefined }[];

onEachDatabase((databases) => {
  beforeEach(async () => {
    opened = await databases.open();
    ({ db, directory: root } = opened);
    directory = join(root, "spool");
    writer = await openUsageWriter(db);
    logged = [];
  });

  afterEach(async () => {
    writer.close();
    await opened.close();
  });

  const keep = (event: string, fields?: LogFields) => void logged.push({ event, fields });
  const log: Log = { info: keep, warn: keep, error: keep };

  function beginOf(requestId: string): UsageBegin {
    return {
      requestId,
      at: 1_800_000_000,
      accountId: "acct_1",
      keyId: "key_1",
      appId: null,
      environment: "live",
      operation: "chat",
      model: "mödel",
      stream: true,
    };
  }

  function endOf(completionTokens: number, durationMs: number): UsageEnd {
    return {
      promptTokens: 10,
      completionTokens,
      estimated: false,
      outcome: "completed",
      errorCode: null,
      nanoUsd: completionTokens * 5,
      capped: false,
      upstream: "up",
      durationMs,
      firstTokenMs: 1,
      queueMs: 0,
    };
  }

  interface Outcome {
    outcome: string;
    completionTokens: number;
    nanoUsd: number | null;
    durationMs: number;
  }

  /** Returns the outcome of each request in the database, after it has checked that records and roll-ups agree. */
  async function found(): Promise<Map<string, Outcome>> {
    const [sums] = await db`
    SELECT count(*) AS requests, coalesce(sum(completion_tokens), 0) AS tokens, coalesce(sum(nano_usd), 0) AS nano_usd
    FROM usage_records`;
    for (const span of ["hour", "day"]) {
      const [rollups] = await db`
      SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(completion_tokens), 0) AS tokens,
        coalesce(sum(nano_usd), 0) AS nano_usd
      FROM usage_rollups WHERE span = ${span}`;
      expect(rollups).toEqual(sums);
    }
    const rows = await db`
    SELECT request_id, outcome, completion_tokens, nano_usd, duration_ms FROM usage_records ORDER BY request_id`;
    return new Map(
      rows.map((row: Record<string, string | number | null>) => [
        String(row["request_id"]),
        {
          outcome: String(row["outcome"]),
          completionTokens: Number(row["completion_tokens"]),
          nanoUsd: row["nano_usd"] === null ? null : Number(row["nano_usd"]),
          durationMs: Number(row["duration_ms"]),
        },
      ]),
    );
  }

  /** Returns a generator of the same random sequence in each run. */
  function randomFrom(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
  }

  /** Returns the content of a segment without the allocated space after it. */
  function contentOf(path: string): Buffer {
    const bytes = readFileSync(path);
    return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
  }

  interface Step {
    /** The spool's length in bytes after the step was written, with all lines of its tick of the event loop. */
    bytes: number;
    requestId: string;
    outcome: Outcome;
  }

  /**
   * Records random interleaved requests, with one to five steps in a tick, over several segments. Nothing is drained.
   */
  async function record(seed: number): Promise<{ steps: Step[]; files: { name: string; bytes: Buffer }[] }> {
    const random = randomFrom(seed);
    let nowMs = 0;
    const clock = { nowSeconds: () => 1_800_000_000, monotonicMs: () => nowMs };
    const options = { db, directory, log, clock, drainMs: 1e9, segmentBytes: 1_500 };
    const ledger = await SpoolLedger.open(options);
    const running: { requestId: string; entry: LedgerEntry; startedMs: number; tokens: number }[] = [];
    const steps: Step[] = [];
    const said: Omit<Step, "bytes">[] = [];
    let bytes = 0;
    // If the spool has grown, that write contains all steps before it.
    const look = () => {
      const before = bytes;
      const sizes = readdirSync(directory).map((name) => contentOf(join(directory, name)).length);
      bytes = sizes.reduce((sum, size) => sum + size, 0);
      if (bytes > before) steps.push(...said.splice(0).map((step) => ({ ...step, bytes })));
    };
    const written = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      look();
    };
    for (let i = 0; i < 150; i++) {
      look();
      if (random(3) === 0 || said.length === 5) await written();
      nowMs += random(1_000);
      const at = random(running.length + 1);
      const one = running[at];
      if (!one) {
        const requestId = `r${String(i).padStart(4, "0")}`;
        running.push({ requestId, entry: ledger.begin(beginOf(requestId)), startedMs: nowMs, tokens: 0 });
        said.push({ requestId, outcome: { outcome: "interrupted", completionTokens: 0, nanoUsd: 0, durationMs: 0 } });
        continue;
      }
      const { requestId, entry } = one;
      one.tokens += random(50);
      const completionTokens = one.tokens;
      const durationMs = nowMs - one.startedMs;
      if (random(2) === 0) {
        const nanoUsd = random(3) === 0 ? null : completionTokens * 5;
        entry.progress({ promptTokens: 10, completionTokens, estimated: true }, nanoUsd);
        said.push({ requestId, outcome: { outcome: "interrupted", completionTokens, nanoUsd, durationMs } });
      } else {
        entry.settle(endOf(completionTokens, durationMs));
        running.splice(at, 1);
        const nanoUsd = completionTokens * 5;
        said.push({ requestId, outcome: { outcome: "completed", completionTokens, nanoUsd, durationMs } });
      }
    }
    await written();
    const files = readdirSync(directory).sort();
    const contents = files.map((name) => ({ name, bytes: contentOf(join(directory, name)) }));
    for (const { entry } of running) entry.settle(endOf(0, 0));
    await ledger.close();
    return { steps, files: contents };
  }

  test("recovers exactly what was written before a crash at any byte, once, however often it is read", async () => {
    const { steps, files } = await record(7);
    expect(files.length).toBeGreaterThan(5);
    const total = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect(steps.at(-1)?.bytes).toBe(total);
    const random = randomFrom(11);
    const boundaries = steps.flatMap(({ bytes }, i) => (i % 7 === 0 ? [bytes - 1, bytes, bytes + 1] : []));
    const deaths = [0, 1, total, ...boundaries, ...Array.from({ length: 40 }, () => random(total))];
    for (const death of deaths.filter((offset) => offset <= total)) {
      await db`DELETE FROM usage_records`;
      await db`DELETE FROM usage_rollups`;
      const expected = new Map(
        steps.flatMap(({ bytes, requestId, outcome }) => (bytes <= death ? [[requestId, outcome] as const] : [])),
      );
      for (const _again of [1, 2]) {
        rmSync(directory, { recursive: true, force: true });
        mkdirSync(directory);
        let left = death;
        for (const { name, bytes } of files) {
          if (left > 0) writeFileSync(join(directory, name), bytes.subarray(0, left));
          left -= bytes.length;
        }
        await recoverSpool({ db, writer, directory, log });
        expect([death, await found()]).toEqual([death, expected]);
        expect(readdirSync(directory)).toEqual([]);
      }
    }
  });

  test("reports a damaged frame without losing others, and needs no other frame of a settled request", async () => {
    const { files } = await record(7);
    const whole = new Map<string, Outcome>(await replay(files));
    const random = randomFrom(5);
    for (let i = 0; i < 10; i++) {
      const damaged = files.map(({ name, bytes }) => ({ name, bytes: Buffer.from(bytes) }));
      const victim = damaged[random(damaged.length)]?.bytes ?? Buffer.alloc(0);
      const start = victim.lastIndexOf("#", random(victim.length - 1));
      const next = victim.indexOf("#", start + 1);
      const end = next === -1 ? victim.length : next;
      const ids = new Set(victim.toString("utf8", start, end).match(/r\d{4}/g));
      victim.fill(0x58, start + 20 + random(end - start - 22), end - 1);
      logged = [];
      const after = await replay(damaged);
      expect(logged.map(({ event }) => event)).toContain("ledger_lines_damaged");
      // Only the requests with lines in the damaged frame may be charged differently.
      for (const [id, outcome] of whole) if (!ids.has(id)) expect(after.get(id)).toEqual(outcome);
    }

    async function replay(spool: typeof files): Promise<Map<string, Outcome>> {
      await db`DELETE FROM usage_records`;
      await db`DELETE FROM usage_rollups`;
      for (const { name, bytes } of spool) writeFileSync(join(directory, name), bytes);
      await recoverSpool({ db, writer, directory, log });
      return found();
    }
  });

  test("reads the spool of the first version, with checksums in lines and no frames", async () => {
    const line = (said: object) => {
      const json = JSON.stringify(said);
      return `${Bun.hash.crc32(json).toString(16).padStart(8, "0")} ${json}\n`;
    };
    mkdirSync(directory);
    const progress = {
      requestId: "b",
      promptTokens: 10,
      completionTokens: 4,
      estimated: true,
      nanoUsd: 7,
      elapsedMs: 9,
    };
    const first = [{ begin: beginOf("a") }, { begin: beginOf("b") }, { settle: { ...beginOf("a"), ...endOf(3, 6) } }];
    writeFileSync(join(directory, "00000001.spool"), first.map(line).join(""));
    writeFileSync(
      join(directory, "00000002.spool"),
      `${line({ progress })}${line({ begin: beginOf("c") }).slice(0, -9)}`,
    );
    const ledger = await SpoolLedger.open({ db, directory, log, clock: systemClock });
    await ledger.close();
    expect(await found()).toEqual(
      new Map([
        ["a", { outcome: "completed", completionTokens: 3, nanoUsd: 15, durationMs: 6 }],
        ["b", { outcome: "interrupted", completionTokens: 4, nanoUsd: 7, durationMs: 9 }],
      ]),
    );
    expect(logged).toEqual([
      { event: "ledger_lines_damaged", fields: { segment: 2, lines: 1 } },
      { event: "ledger_recovered", fields: { settled: 1, interrupted: 1 } },
    ]);
    expect(readdirSync(directory)).toEqual([]);
  });

  // hardening: O4
  test("leaves a newer version's records and their requests on the spool, and counts nothing twice", async () => {
    const begin = (id: string) => ["b", id, 1_800_000_000, "acct_1", "key_1", null, "live", "chat", "m", true];
    const progress = (id: string, tokens: number) => ["p", id, true, 10, tokens, tokens * 5, 9];
    const settle = (id: string, outcome: string) => [
      ...["s", ...begin(id).slice(1), outcome, null, false, false, "up", 10, 3, 15, 6, 1, 0],
    ];
    const write = (name: string, lines: unknown[]) => {
      const text = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      writeFileSync(join(directory, name), Buffer.concat([Buffer.from(frameHeader(text)), text]));
    };
    const [first, second] = ["00000001.spool", "00000002.spool"];
    mkdirSync(directory);
    write(first, [begin("known"), begin("cut"), progress("cut", 2), begin("newer"), progress("newer", 1)]);
    write(second, [
      settle("known", "completed"),
      settle("newer", "beamed_up"),
      ["n", "else", 1],
      { of: "another shape" },
    ]);
    const known = { outcome: "completed", completionTokens: 3, nanoUsd: 15, durationMs: 6 };
    const cut = { outcome: "interrupted", completionTokens: 2, nanoUsd: 10, durationMs: 9 };
    for (const time of ["at first", "again"]) {
      logged = [];
      const { unknown } = await recoverSpool({ db, writer, directory, log });
      expect(unknown).toBe(3);
      expect(logged).toContainEqual({
        event: "usage_of_newer_version",
        fields: expect.objectContaining({ lines: 3, files: 2 }),
      });
      expect([time, await found()]).toEqual([
        time,
        new Map([
          ["cut", cut],
          ["known", known],
        ]),
      ]);
      expect(readdirSync(directory).sort()).toEqual([first, second]);
    }
    // A server begins a segment after them, and leaves them in place.
    const ledger = await SpoolLedger.open({ db, directory, log, clock: systemClock });
    const entry = ledger.begin(beginOf("own"));
    await entry.begun;
    await entry.settle(endOf(3, 6));
    await ledger.close();
    expect(readdirSync(directory).sort()).toEqual([first, second]);
    // The newer version can read the lines that it wrote.
    write(second, [settle("known", "completed"), settle("newer", "completed")]);
    const { settled, interrupted, unknown } = await recoverSpool({ db, writer, directory, log });
    expect({ settled, interrupted, unknown }).toEqual({ settled: 1, interrupted: 0, unknown: 0 });
    expect(await found()).toEqual(
      new Map([
        ["cut", cut],
        ["known", known],
        ["newer", known],
        ["own", known],
      ]),
    );
    expect(readdirSync(directory)).toEqual([]);
  });

  test("reports an unwritable database at the start, keeps the spool, and reads it at the next start", async () => {
    const { files, steps } = await record(3);
    for (const { name, bytes } of files) writeFileSync(join(directory, name), bytes);
    await db`DELETE FROM usage_records`;
    await db`DELETE FROM usage_rollups`;
    await db.unsafe("ALTER TABLE usage_rollups RENAME TO gone");
    await expect(recoverSpool({ db, writer, directory, log })).rejects.toThrow();
    expect(readdirSync(directory).sort()).toEqual(files.map(({ name }) => name));
    await db.unsafe("ALTER TABLE gone RENAME TO usage_rollups");
    await recoverSpool({ db, writer, directory, log });
    expect((await found()).size).toBe(new Set(steps.map(({ requestId }) => requestId)).size);
  });

  /**
   * The program of a child process, which records simulated requests until it is killed, and prints each
   * acknowledgement of the ledger.
   */
  const child = () => `
  import { writeSync } from "node:fs";
  const [home, name] = process.argv.slice(-2);
  const { SpoolLedger } = await import(${JSON.stringify(join(import.meta.dir, "ledger.ts"))});
  const db = await ${opened.openingCode};
  const log = { info() {}, warn() {}, error(event, fields) { console.error(event, fields); } };
  const clock = { nowSeconds: () => Math.floor(Date.now() / 1000), monotonicMs: () => performance.now() };
  const ledger = await SpoolLedger.open({
    db, directory: home + "/spool", log, clock, drainMs: 3, segmentBytes: 8_000, carryAfterMs: 0, segmentAgeMs: 20,
  });
  const running = [];
  for (let i = 0; ; i++) {
    let told = "";
    const waits = [];
    for (let begins = 1 + Math.floor(Math.random() * 4); begins > 0; begins--) {
      const id = name + "-" + i + "-" + begins;
      const begin = ${JSON.stringify(beginOf(""))};
      const entry = ledger.begin({ ...begin, requestId: id });
      waits.push(entry.begun);
      running.push({ id, tokens: 0, entry });
      told += "b " + id + "\\n";
    }
    for (let j = 0; j < 3; j++) {
      const one = running[Math.floor(Math.random() * running.length)];
      one.tokens += 1 + Math.floor(Math.random() * 9);
      one.entry.progress({ promptTokens: 10, completionTokens: one.tokens, estimated: true }, one.tokens * 5);
      told += "p " + one.id + " " + one.tokens + "\\n";
    }
    while (running.length > 5) {
      const [one] = running.splice(Math.floor(Math.random() * running.length), 1);
      const end = { ...${JSON.stringify(endOf(0, 5))}, completionTokens: one.tokens, nanoUsd: one.tokens * 5 };
      waits.push(one.entry.settle(end));
      told += "s " + one.id + " " + one.tokens + "\\n";
    }
    await Promise.all(waits);
    writeSync(1, told);
    if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }`;

  /**
   * Both children write to one database. A batch that finds the database locked for too long is logged, and written
   * with the next batch.
   */
  const isLocked = /usage_write_failed \{\s+detail: "SQLiteError: database is locked",\s+waiting: \d+,\s+\}\n/g;

  test(`keeps every acknowledged record once through ${2 * deaths} random kill -9`, async () => {
    // The two series of kills are independent, so that they can run concurrently.
    const results = await Promise.all([cycles("a"), cycles("b")]);
    expect(Math.min(...results)).toBeGreaterThan(100);
    const [sums] = await db`SELECT count(*) AS n, sum(completion_tokens) AS tokens FROM usage_records`;
    const [rollups] = await db`
    SELECT sum(requests) AS n, sum(completion_tokens) AS tokens FROM usage_rollups WHERE span = 'day'`;
    expect(rollups).toEqual(sums);

    async function cycles(name: string): Promise<number> {
      const home = join(root, name);
      mkdirSync(home);
      const promised = new Map<string, { settled: boolean; tokens: number }>();
      for (let cycle = 0; cycle < deaths; cycle++) {
        const process_ = Bun.spawn([process.execPath, "-e", child(), home, `${name}${cycle}`], { stderr: "pipe" });
        const enough = 1_000 + Math.random() * 20_000;
        let received = "";
        const decoder = new TextDecoder();
        for await (const bytes of process_.stdout) {
          received += decoder.decode(bytes, { stream: true });
          if (received.length > enough) process_.kill("SIGKILL");
        }
        expect((await new Response(process_.stderr).text()).replaceAll(isLocked, "")).toBe("");
        await process_.exited;
        // A line after the last newline was not printed completely.
        for (const line of received.slice(0, received.lastIndexOf("\n")).split("\n")) {
          const [kind, id = "", tokens] = line.split(" ");
          promised.set(id, { settled: kind === "s", tokens: Number(tokens ?? 0) });
        }
      }
      await recoverSpool({ db, writer, directory: join(home, "spool"), log });
      const rows: { request_id: string; outcome: string; completion_tokens: number | string }[] =
        await db`SELECT request_id, outcome, completion_tokens FROM usage_records WHERE request_id LIKE ${`${name}%`}`;
      const byId = new Map(
        rows.map((row) => [row.request_id, { ...row, completion_tokens: Number(row.completion_tokens) }]),
      );
      for (const [id, { settled, tokens }] of promised) {
        const row = byId.get(id);
        if (!row) throw new Error(`${id} is lost`);
        if (settled) expect([id, row.outcome, row.completion_tokens]).toEqual([id, "completed", tokens]);
        else expect(row.completion_tokens).toBeGreaterThanOrEqual(tokens);
      }
      // Besides the acknowledged requests, the database may contain only those that each process was working on when it
      // died.
      expect(rows.length - promised.size).toBeLessThanOrEqual(20 * deaths);
      return promised.size;
    }
  }, 60_000);
});
