// Codes and refresh tokens that are presented many times at once, to a real server: one winner, and what follows for it.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { systemClock } from "../../src/base/clock.ts";
import type { RedeemingJob, RedeemingResult } from "../fixtures/redeeming-app.ts";
import { type Browser, setUp } from "../support/browser.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import {
  type AppReply,
  askAsApp,
  basicHeader,
  codeFields,
  codeFor,
  type RegisteredApp,
  refreshFields,
  registerApp,
} from "../support/oauth-apps.ts";
import { seeded } from "../support/seeded.ts";
import { storedGrants } from "../support/stored-grants.ts";

const clock = manualClock(systemClock.nowSeconds());
let server: TestServer;
let person: Browser;
let app: RegisteredApp;

beforeAll(async () => {
  server = await startHeadrace({ clock });
  person = await setUp(server);
  app = await registerApp(server);
});

afterAll(() => server[Symbol.asyncDispose]());

// No test uses up what another may ask for in a minute.
beforeEach(() => clock.advance(60_000));

const token = (fields: Record<string, string>, by = app) => askAsApp(server.url, "token", by, fields);
const isActive = async (text: unknown, by = app) =>
  (await askAsApp(server.url, "introspect", by, { token: String(text) })).body["active"];
const probe = async (accessToken: unknown) =>
  (await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${String(accessToken)}` } })).status;

/** The grant that was made last, in the database. */
const lastGrant = () => storedGrants(server.dataDir).at(-1);

async function expectDead(tokens: Record<string, unknown>, by = app): Promise<void> {
  expect(await probe(tokens["access_token"])).toBe(401);
  expect(await isActive(tokens["access_token"], by)).toBe(false);
  const again = await token(refreshFields(tokens["refresh_token"]), by);
  expect([again.status, again.body["error"]]).toEqual([400, "invalid_grant"]);
}

/** One 200, and nothing but `invalid_grant` beside it. Gives what the winner got. */
function onlyWinner(replies: readonly AppReply[]): Record<string, unknown> {
  const [winner, ...more] = replies.filter(({ status }) => status === 200);
  expect(more).toEqual([]);
  const losers = replies.filter((reply) => reply !== winner).map(({ status, body }) => [status, body["error"]]);
  expect(losers).toEqual(Array.from({ length: replies.length - 1 }, () => [400, "invalid_grant"]));
  return winner?.body ?? {};
}

/** The same request over that many connections, whose last bytes are sent in one go. */
async function atOnce(connections: number, fields: Record<string, string>): Promise<AppReply[]> {
  const body = new URLSearchParams(fields).toString();
  const { host, hostname, port } = new URL(server.url);
  const { authorization } = basicHeader(app.id, app.secret);
  const request = [
    "POST /oauth/token HTTP/1.1",
    ...[`Host: ${host}`, `Authorization: ${authorization}`, "Content-Type: application/x-www-form-urlencoded"],
    ...[`Content-Length: ${body.length}`, "Connection: close", "", body],
  ].join("\r\n");
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(Number(port), hostname);
      const chunks: Buffer[] = [];
      socket.on("data", (bytes: Buffer) => chunks.push(bytes));
      const ended = new Promise<string>((resolve, reject) => {
        socket.on("close", () => resolve(Buffer.concat(chunks).toString()));
        socket.on("error", reject);
      });
      await new Promise<void>((resolve) => socket.write(request.slice(0, -1), () => resolve()));
      return { socket, ended };
    }),
  );
  for (const { socket } of sockets) socket.write(request.slice(-1));
  return Promise.all(
    sockets.map(async ({ ended }) => {
      const [head = "", text = ""] = (await ended).split("\r\n\r\n");
      return { status: Number(head.split(" ")[1]), body: JSON.parse(text) };
    }),
  );
}

async function tokens(): Promise<Record<string, unknown>> {
  const { status, body } = await token(codeFields(await codeFor(app, person), app));
  expect(status).toBe(200);
  return body;
}

describe("an authorization code", () => {
  // hardening: A8
  test("redeems a code once for 50 concurrent connections, and revokes its tokens because of the replay", async () => {
    const asked = await codeFor(app, person);
    const winner = onlyWinner(await atOnce(50, codeFields(asked, app)));
    expect(winner["refresh_token"]).toStartWith("hrr_");
    await expectDead(winner);
    expect(lastGrant()).toMatchObject({ revoked: true, tokens: 1, events: ["grant.created", "grant.replayed"] });
  });

  test("revokes the tokens of a code, refreshed ones included, if it is replayed long after", async () => {
    const asked = await codeFor(app, person);
    const first = await token(codeFields(asked, app));
    const second = await token(refreshFields(first.body["refresh_token"]));
    expect([first.status, second.status, await probe(second.body["access_token"])]).toEqual([200, 200, 200]);
    clock.advance(3_000_000);
    onlyWinner([first, await token(codeFields(asked, app))]);
    expect(await probe(first.body["access_token"])).toBe(401);
    await expectDead(second.body);
  });

  test("refuses a code to another app without revoking anything", async () => {
    const other = await registerApp(server, { type: "public" });
    const asked = await codeFor(app, person);
    const before = await token(codeFields(asked, app), other);
    const own = await token(codeFields(asked, app));
    const after = await token(codeFields(asked, app), other);
    expect([before.status, own.status, after.status]).toEqual([400, 200, 400]);
    expect(await probe(own.body["access_token"])).toBe(200);
  });

  // hardening: A8
  test("redeems a code once among several apps in separate threads, in any order, 20 times", async () => {
    const apps = [app, await registerApp(server), await registerApp(server, { type: "public" })];
    const threads = apps.map(() => new Worker(new URL("../fixtures/redeeming-app.ts", import.meta.url)));
    const random = seeded(20_261_121);
    try {
      for (let round = 0; round < 20; round++) {
        clock.advance(60_000);
        const fields: Record<string, string>[] = [];
        for (const one of apps) fields.push(codeFields(await codeFor(one, person), one));
        const before = storedGrants(server.dataDir).length;
        const results = await Promise.all(apps.map((one, i) => run(threads[i], jobOf(one, fields[i] ?? {}, random))));
        const winners = results.map(onlyWinner);
        const made = storedGrants(server.dataDir).slice(before);
        expect(made.map(({ appId }) => appId).sort()).toEqual(apps.map(({ id }) => id).sort());
        for (const grant of made) {
          expect(grant).toMatchObject({ revoked: true, tokens: 1, events: ["grant.created", "grant.replayed"] });
        }
        expect(await Promise.all(winners.map((winner) => probe(winner["access_token"])))).toEqual([401, 401, 401]);
      }
    } finally {
      for (const thread of threads) thread.terminate();
    }
  });
});

function jobOf(one: RegisteredApp, fields: Record<string, string>, random: () => number): RedeemingJob {
  const isPublic = one.secret === "";
  const body = new URLSearchParams({ ...fields, ...(isPublic ? { client_id: one.id } : {}) }).toString();
  const spreadMs = random() * 20;
  return {
    url: `${server.url}/oauth/token`,
    headers: isPublic ? {} : basicHeader(one.id, one.secret),
    requests: Array.from({ length: 17 }, () => ({ body, afterMs: random() * spreadMs })),
  };
}

function run(thread: Worker | undefined, job: RedeemingJob): Promise<RedeemingResult> {
  return new Promise((resolve, reject) => {
    if (!thread) throw new Error("There is a thread for each app.");
    thread.onmessage = ({ data }: MessageEvent<RedeemingResult>) => resolve(data);
    thread.onerror = (event) => reject(new Error(event.message));
    thread.postMessage(job);
  });
}

describe("a refresh token", () => {
  test("returns the same answer and one successor to 20 concurrent uses of a refresh token", async () => {
    const first = await tokens();
    const replies = await atOnce(20, refreshFields(first["refresh_token"]));
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(replies[0]?.body["refresh_token"]).not.toBe(first["refresh_token"]);
    expect(lastGrant()).toMatchObject({ revoked: false, liveTokens: 1, tokens: 2 });
    expect(lastGrant()?.events).toEqual(["grant.created", "grant.refreshed"]);
    expect(await probe(replies[0]?.body["access_token"])).toBe(200);
    expect((await token(refreshFields(replies[0]?.body["refresh_token"]))).status).toBe(200);
  });

  test("revokes the grant if a refresh token is used with two different scopes at once", async () => {
    const first = await tokens();
    const [wide, narrow] = await Promise.all([
      atOnce(10, refreshFields(first["refresh_token"])),
      atOnce(10, refreshFields(first["refresh_token"], { scope: "models:read" })),
    ]);
    const given = [...wide, ...narrow].filter(({ status }) => status === 200);
    const refused = [...wide, ...narrow].filter(({ status }) => status !== 200);
    expect(new Set(given.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(new Set(refused.map(({ status, body }) => `${status} ${body["error"]}`))).toEqual(
      new Set(["400 invalid_grant"]),
    );
    // All of one scope are among those that were refused.
    expect([wide, narrow].some((replies) => replies.every(({ status }) => status === 400))).toBe(true);
    expect(lastGrant()).toMatchObject({ revoked: true, tokens: 2 });
    expect(lastGrant()?.events).toEqual(["grant.created", "grant.refreshed", "grant.replayed"]);
    await expectDead(given[0]?.body ?? {});
  });

  test("repeats the answer to a refresh token for 10 s, and revokes the grant afterwards", async () => {
    const first = await tokens();
    const second = await token(refreshFields(first["refresh_token"]));
    clock.advance(9_000);
    expect(await token(refreshFields(first["refresh_token"]))).toEqual(second);
    clock.advance(1_000);
    const late = await token(refreshFields(first["refresh_token"]));
    expect([late.status, late.body["error"]]).toEqual([400, "invalid_grant"]);
    await expectDead(second.body);
    expect(await probe(first["access_token"])).toBe(401);
    expect(lastGrant()?.events).toEqual(["grant.created", "grant.refreshed", "grant.replayed"]);
  });

  test("accepts a refresh token while its predecessor can still be repeated, with the same successor", async () => {
    const first = await tokens();
    const second = await token(refreshFields(first["refresh_token"]));
    clock.advance(4_000);
    const third = await token(refreshFields(second.body["refresh_token"]));
    expect(third.status).toBe(200);
    clock.advance(4_000);
    expect(await token(refreshFields(first["refresh_token"]))).toEqual(second);
    expect(await token(refreshFields(second.body["refresh_token"]))).toEqual(third);
    expect(lastGrant()).toMatchObject({ revoked: false, liveTokens: 1, tokens: 3 });
    const [active, ...used] = await Promise.all(
      [third.body, second.body, first].map((body) => isActive(body["refresh_token"])),
    );
    expect([active, used]).toEqual([true, [false, false]]);
  });

  test("refuses a refresh token to another app without revoking anything", async () => {
    const other = await registerApp(server);
    const first = await tokens();
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => token(refreshFields(first["refresh_token"]), other)),
    );
    expect(new Set(replies.map(({ body }) => body["error"]))).toEqual(new Set(["invalid_grant"]));
    expect((await token(refreshFields(first["refresh_token"]))).status).toBe(200);
  });
});
