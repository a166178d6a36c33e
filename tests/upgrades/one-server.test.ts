// One server of an earlier version with data of every kind, killed with usage on its spool: today's goes on from there, and the way back is as docs/upgrading.md says.
import { afterEach, describe, expect, test } from "bun:test";
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import releases from "../../deploy/releases.json" with { type: "json" };
import { worksFrom } from "../../src/storage/sql/migrations.ts";
import {
  earlierVersion,
  laterName,
  laterVersion,
  missingHistory,
  today,
  type Version,
} from "../support/earlier-programs.ts";
import { until } from "../support/headrace.ts";
import {
  chat,
  expectAll,
  expectMore,
  furnish,
  furnishMore,
  type Made,
  type Meter,
  newPlace,
  type Place,
  runVersion,
  startMeter,
  startVersion,
  stop,
} from "../support/installation.ts";
import { type LedgerSums, ledgerSums } from "../support/ledger-sums.ts";
import { long } from "../support/long.ts";
import { postgresBinaries, sharedPostgres } from "../support/postgres.ts";
import type { ServerProcess } from "../support/server-process.ts";

/** What the launcher sets. */
const bunSettings = { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
/** Requests whose usage is on the spool alone when the server is killed. */
const unwritten = 12;
const kinds = ["SQLite", "PostgreSQL"] as const;
type Kind = (typeof kinds)[number];
const refusingToday = releases.filter(({ schema }) => schema < worksFrom);
const workingWithToday = releases.filter(({ schema }) => schema >= worksFrom);

let meter: Meter;
const stack: AsyncDisposable[] = [];

afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

interface Installation {
  kind: Kind;
  place: Place;
  ledger: LedgerSums;
  url: string;
}

async function install(kind: Kind): Promise<Installation> {
  meter = await startMeter();
  stack.push(meter);
  if (kind === "SQLite") {
    const place = await placed({});
    return { kind, place, ledger: ledgerSums(place), url: `http://localhost:${place.port}` };
  }
  return onDatabase(await (await sharedPostgres()).emptyDatabase(), await placed({ HEADRACE_LAME_DUCK_SECONDS: "0" }));
}

function onDatabase(databaseUrl: string, { dataDir, port, env }: Place): Installation {
  const place = { dataDir, port, env: { ...env, HEADRACE_DATABASE_URL: databaseUrl } };
  return { kind: "PostgreSQL", place, ledger: ledgerSums({ databaseUrl }), url: `http://localhost:${port}` };
}

async function placed(env: Record<string, string>): Promise<Place> {
  const place = await newPlace(env);
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(place.dataDir, { recursive: true, force: true }) });
  return place;
}

async function start(version: Version, { place }: Installation): Promise<ServerProcess> {
  const server = await startVersion(version, place, { config: meter.config });
  stack.push(server);
  return server;
}

/** All that the model server answered, and nothing else. */
const allIsBooked = ({ ledger }: Installation, expected = meter.booked()) =>
  until(async () => Bun.deepEquals(await ledger.booked(), expected), "all usage is booked, and rolled up");

/** With the usage of requests that were answered on the spool alone. */
async function killUnwritten(server: ServerProcess, { ledger, url }: Installation, key: string): Promise<void> {
  await ledger.whileShut(async () => {
    for (let n = 0; n < unwritten; n++) expect((await chat(url, key, { stream: n % 2 === 0 })).status).toBe(200);
    server.process.kill("SIGKILL");
    await server.process.exited;
  });
  expect((await ledger.booked()).requests).toBeLessThanOrEqual(meter.booked().requests - unwritten);
}

/** Refused with both schemas and what to do, before anything is changed. */
async function expectRefused({ main }: Version, { place, ledger }: Installation, said: RegExp): Promise<void> {
  const schema = await ledger.schema();
  const child = Bun.spawn(
    [
      process.execPath,
      main,
      "serve",
      "--config",
      meter.config,
      "--data-dir",
      place.dataDir,
      "--port",
      "0",
      "--no-demo",
    ],
    {
      env: { PATH: "/usr/bin:/bin", HOME: place.dataDir, ...bunSettings, ...place.env },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const texts = await Promise.all([child.stdout, child.stderr].map((stream) => new Response(stream).text()));
  expect(await child.exited).not.toBe(0);
  expect(texts.join("")).toMatch(said);
  expect(await ledger.schema()).toBe(schema);
}

/** What an operator keeps before an upgrade, and puts back after it. */
async function keep(installation: Installation): Promise<() => Promise<Installation>> {
  const { kind, place } = installation;
  if (kind === "SQLite") return async () => installation;
  const [dump, spool] = [join(place.dataDir, "before.dump"), join(place.dataDir, "spool")];
  const binary = (name: string) => join(postgresBinaries(), name);
  await Bun.$`${binary("pg_dump")} --format=custom --file=${dump} ${place.env["HEADRACE_DATABASE_URL"] ?? ""}`.quiet();
  cpSync(spool, `${spool}-before`, { recursive: true });
  return async () => {
    const url = await (await sharedPostgres()).emptyDatabase();
    await Bun.$`${binary("pg_restore")} --no-owner --dbname=${url} ${dump}`.quiet();
    rmSync(spool, { recursive: true });
    cpSync(`${spool}-before`, spool, { recursive: true });
    return onDatabase(url, place);
  };
}

async function restoreBackup(version: Version, { place }: Installation): Promise<void> {
  const backups = join(place.dataDir, "backups");
  const [name = ""] = readdirSync(backups);
  const { code, stderr } = await runVersion(version, place, ["restore", join(backups, name), "--replace"]);
  expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
}

describe.each(kinds)("on %s", (kind) => {
  // The short form runs two of the older schemas: the oldest on one database, the newest on the other.
  const chosen = long ? refusingToday : [refusingToday.at(kind === "SQLite" ? 0 : -1)].flatMap((one) => one ?? []);

  // hardening: O4
  test.skipIf(missingHistory !== undefined).each(chosen)(
    "upgrades data from $version after kill -9 without losing usage, and restores the backup and upgrades again",
    async (release) => {
      const earlier = earlierVersion(release);
      const { schema } = release;
      const before = await install(kind);
      let server = await start(earlier, before);
      const made = await furnish(earlier, before.place, server, meter);
      await expectAll(before.url, made);
      await killUnwritten(server, before, made.keys.plain);
      expect(await before.ledger.schema()).toBe(schema);
      const [known, putBack]: [Made, () => Promise<Installation>] = [{ ...made }, await keep(before)];
      const usage = meter.booked();

      server = await start(today, before);
      await allIsBooked(before);
      await expectAll(before.url, made);
      await allIsBooked(before);
      await stop(server);
      expect(await before.ledger.schema()).toBe(today.schema);
      await expectRefused(earlier, before, new RegExp(`version ${today.schema}.* knows ${schema}\\b`));

      const back = await putBack();
      if (kind === "SQLite") await restoreBackup(earlier, back);
      server = await start(earlier, back);
      await allIsBooked(back, usage);
      const since = meter.booked();
      await expectAll(back.url, known);
      await stop(server);
      server = await start(today, back);
      await expectAll(back.url, known);
      const all = meter.booked();
      await allIsBooked(back, {
        requests: usage.requests + all.requests - since.requests,
        nanoUsd: usage.nanoUsd + all.nanoUsd - since.nanoUsd,
      });
      await stop(server);
    },
    120_000,
  );

  // hardening: O4
  test.skipIf(missingHistory !== undefined).each(workingWithToday)(
    "alternates today's program and $version with the same schema after kill -9 without losing data or usage",
    async (release) => {
      const earlier = earlierVersion(release);
      const installation = await install(kind);
      const { place, url, ledger } = installation;
      let server = await start(earlier, installation);
      const made = await furnish(earlier, place, server, meter);
      await expectAll(url, made);
      for (const version of [today, earlier, today]) {
        await killUnwritten(server, installation, made.keys.plain);
        server = await start(version, installation);
        await allIsBooked(installation);
        await expectAll(url, made);
        await allIsBooked(installation);
        expect(await ledger.schema()).toBe(today.schema);
      }
      await stop(server);
    },
    120_000,
  );

  // hardening: O4
  test("continues after a newer program with its schema, keeps its spool, and books everything once it returns", async () => {
    const installation = await install(kind);
    const { place, url, ledger } = installation;
    let server = await start(today, installation);
    const made = await furnish(today, place, server, meter);
    const more = await furnishMore(url, made);
    const expectEverything = async () => {
      await expectAll(url, made);
      await expectMore(url, made, more);
    };
    await expectEverything();
    await killUnwritten(server, installation, made.keys.plain);

    server = await start(laterVersion(), installation);
    await allIsBooked(installation);
    await expectEverything();
    await allIsBooked(installation);
    expect(await ledger.schema()).toBe(laterVersion().schema);
    const readable = meter.booked();
    await killUnwritten(server, installation, made.keys.plain);

    server = await start(today, installation);
    expect(server.log()).toContain('"event":"schema_is_newer"');
    expect(server.log()).toContain(`"made_by":"${laterName}"`);
    expect(server.log()).toMatch(/"event":"usage_of_newer_version","lines":\d+/);
    await allIsBooked(installation, readable);
    await expectEverything();
    const doctor = await runVersion(today, place, ["doctor", "--json"]);
    expect(doctor.stdout).toMatch(/this Headrace knows \d+, and can work with it/);
    expect(doctor.stdout).toMatch(/cannot be understood, as of a newer Headrace/);
    await stop(server);

    server = await start(laterVersion(), installation);
    await allIsBooked(installation);
    await expectEverything();
    await allIsBooked(installation);
    await stop(server);
    expect(readdirSync(join(place.dataDir, "spool"))).toEqual([]);
    if (kind === "SQLite") expect(readdirSync(join(place.dataDir, "backups"))).toHaveLength(1);
    else expect(existsSync(join(place.dataDir, "backups"))).toBe(false);
  }, 120_000);
});
