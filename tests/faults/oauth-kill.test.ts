// `kill -9` of the server while apps redeem codes and refresh: no token that was received is lost, nothing is given twice.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, setUp } from "../support/browser.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import {
  type AskedCode,
  askAsApp,
  codeFields,
  codeFor,
  type RegisteredApp,
  refreshFields,
  registerApp,
} from "../support/oauth-apps.ts";
import { storedGrants } from "../support/stored-grants.ts";

const cycles = long ? 200 : 5;
/** Each with a grant of its own, that it keeps alive. */
const refreshing = 4;
/** The part of the 10 s, in which a lost answer is given again, that is left for a slow machine. */
const graceMs = 8_000;
const root = join(import.meta.dir, "..", "..");
const directory = mkdtempSync(join(tmpdir(), "headrace-oauth-kill-"));
const dataDir = join(directory, "data");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function headrace(args: readonly string[]) {
  return Bun.spawn([process.execPath, join(root, "src", "main.ts"), ...args, "--data-dir", dataDir], {
    cwd: directory,
    env: { PATH: "/usr/bin:/bin", HOME: directory, BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Always at the same address: it is in what the tokens say. */
async function startServer(port: number) {
  const args = ["serve", "--port", String(port), "--no-demo", "--no-discover-local", "--log-format", "json"];
  const child = headrace(args);
  let text = "";
  void (async () => {
    for await (const bytes of child.stdout) text += new TextDecoder().decode(bytes);
  })();
  await until(
    () => {
      if (child.exitCode !== null) throw new Error(`The server ended: ${text}`);
      return text.includes('"base_url"');
    },
    "the server listens",
    20_000,
  );
  return child;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function begin(url: string): Promise<{ person: Browser; app: RegisteredApp }> {
  const command = headrace(["setup-link", "--quiet", "--base-url", `${url}/v1`]);
  const link = (await new Response(command.stdout).text()).trim();
  const { api_key: key } = await Bun.file(join(dataDir, "credentials.json")).json();
  return { person: await setUp({ url, setupLink: link }), app: await registerApp({ url, key: String(key) }) };
}

/** What one app's client knows of its grant. */
interface Held {
  /** The last that it received. */
  token: string;
  /** When it last sent it. */
  askedAt: number;
}

interface Tally {
  refreshed: number;
  redeemed: number;
  /** Sent, and the answer did not come. */
  unanswered: number;
  /** How many of these, and of refreshes, had been written all the same. */
  written: number;
  lost: string[];
  doubled: string[];
  /** That could not be told, as the start took too long. */
  late: number;
}

/** Undefined: the server died. */
async function ask(url: string, app: RegisteredApp, fields: Record<string, string>) {
  try {
    return await askAsApp(url, "token", app, fields);
  } catch {
    return undefined;
  }
}

/** Refreshes what it holds until the server dies. */
async function refreshAgain(url: string, app: RegisteredApp, held: Held, tally: Tally): Promise<void> {
  for (;;) {
    held.askedAt = performance.now();
    const answer = await ask(url, app, refreshFields(held.token));
    if (!answer) return;
    if (answer.status === 200) {
      held.token = String(answer.body["refresh_token"]);
      tally.refreshed++;
    } else if (answer.status !== 429) tally.lost.push(`a refresh while it runs: ${JSON.stringify(answer)}`);
    await Bun.sleep(Math.random() * 8);
  }
}

/** Redeems codes until the server dies. Gives what was sent without an answer, and tokens that nobody needs. */
async function redeemAgain(url: string, person: Browser, app: RegisteredApp, tally: Tally) {
  const left: { unanswered: AskedCode | undefined; tokens: string[] } = { unanswered: undefined, tokens: [] };
  for (;;) {
    const asked = await codeFor(app, person).catch(() => undefined);
    if (!asked) return left;
    const answer = await ask(url, app, codeFields(asked, app));
    if (!answer) return { ...left, unanswered: asked };
    if (answer.status === 200) {
      left.tokens.push(String(answer.body["refresh_token"]));
      tally.redeemed++;
    } else if (answer.status !== 429) tally.lost.push(`a code while it runs: ${JSON.stringify(answer)}`);
    await Bun.sleep(Math.random() * 8);
  }
}

/** What was received still works after the start. */
async function expectHeld(url: string, app: RegisteredApp, held: Held, tally: Tally): Promise<void> {
  const answer = await ask(url, app, refreshFields(held.token));
  if (performance.now() - held.askedAt > graceMs) {
    tally.late++;
    return;
  }
  if (answer?.status !== 200) {
    tally.lost.push(`a refresh token: ${JSON.stringify(answer)}`);
    return;
  }
  held.askedAt = performance.now();
  // The very same once more: whatever was written before the death, there is one successor.
  const again = await ask(url, app, refreshFields(held.token));
  if (again?.body["refresh_token"] !== answer.body["refresh_token"]) tally.doubled.push("a successor");
  held.token = String(answer.body["refresh_token"]);
}

/** A code whose answer did not come was taken or was not; either way it works no more than once from now on. */
async function expectOnce(url: string, app: RegisteredApp, asked: AskedCode, tally: Tally): Promise<void> {
  tally.unanswered++;
  const second = await ask(url, app, codeFields(asked, app));
  const third = await ask(url, app, codeFields(asked, app));
  if (third?.status === 200) tally.doubled.push("a code");
  if (second?.status !== 200) {
    tally.written++;
    return;
  }
  const refreshed = await ask(url, app, refreshFields(second.body["refresh_token"]));
  if (refreshed?.body["error"] !== "invalid_grant") {
    const [replay, after] = [third, refreshed].map((answer) => `${answer?.status} ${answer?.body["error"]}`);
    tally.doubled.push(`the tokens of a code that came again: ${replay}, then ${after}`);
  }
}

// hardening: A9
test(`loses or doubles no token over ${cycles} kills while apps redeem and refresh, with a complete audit log`, async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const tally: Tally = { refreshed: 0, redeemed: 0, unanswered: 0, written: 0, lost: [], doubled: [], late: 0 };
  let server = await startServer(port);
  try {
    const { person, app } = await begin(url);
    let held: Held[] = [];
    const holdAnew = async () => {
      held = [];
      while (held.length < refreshing) {
        const answer = await ask(url, app, codeFields(await codeFor(app, person), app));
        held.push({ token: String(answer?.body["refresh_token"]), askedAt: performance.now() });
      }
    };
    await holdAnew();
    for (let cycle = 0; cycle < cycles; cycle++) {
      const loops = Promise.all(held.map((one) => refreshAgain(url, app, one, tally)));
      const redeeming = redeemAgain(url, person, app, tally);
      await Bun.sleep(20 + Math.random() * 300);
      server.kill("SIGKILL");
      await server.exited;
      await loops;
      const { unanswered, tokens } = await redeeming;
      server = await startServer(port);
      const lateBefore = tally.late;
      const tokensBefore = tokensStored();
      for (const one of held) await expectHeld(url, app, one, tally);
      tally.written += refreshing - (tokensStored() - tokensBefore);
      if (unanswered) await expectOnce(url, app, unanswered, tally);
      for (const token of tokens) {
        const { body } = await askAsApp(url, "introspect", app, { token });
        if (body["active"] !== true) tally.lost.push("the first token of a code");
        await askAsApp(url, "revoke", app, { token });
      }
      compare();
      // A start that took too long says nothing of the server's word; go on with what can be known again.
      if (tally.late > lateBefore) await holdAnew();
    }
    expect({ lost: tally.lost, doubled: tally.doubled }).toEqual({ lost: [], doubled: [] });
    expect(tally.refreshed).toBeGreaterThan(cycles);
    expect(tally.redeemed).toBeGreaterThan(0);
    expect(tally.late).toBeLessThan(cycles * refreshing);
    const { refreshed, redeemed, unanswered, written, late } = tally;
    console.log(
      `${cycles} kills: ${refreshed} refreshed, ${redeemed} redeemed, ${unanswered} codes unanswered, ${written} answers lost after they were written, ${late} too late to tell`,
    );
  } finally {
    server.kill("SIGTERM");
    await server.exited;
  }
}, 900_000);

const tokensStored = () => storedGrants(dataDir).reduce((sum, { tokens }) => sum + tokens, 0);

/** What the database says by itself: each grant has its tokens, one of them live, and its events. */
function compare(): void {
  const odd = storedGrants(dataDir).filter(({ revoked, liveTokens, tokens, events }) => {
    const count = (action: string) => events.filter((event) => event === action).length;
    const ended = count("grant.replayed") + count("grant.revoked");
    return (
      liveTokens !== 1 ||
      count("grant.created") !== 1 ||
      count("grant.refreshed") !== tokens - 1 ||
      ended !== (revoked ? 1 : 0)
    );
  });
  expect(odd).toEqual([]);
}
