// `headrace login` and what follows it, as processes of their own against a running server, approved by a person at a browser.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { StoredLogin } from "../../src/cli/login/login-store.ts";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { type Browser, decideDevice, invite, removeAccess, setUp } from "../support/browser.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { makeWorkspace, type Program, startProgram, type Workspace } from "../support/program.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

// Each command is two processes that have to start, on a machine that may have other work.
setDefaultTimeout(60_000);

const password = "lamp gravel otter seven";
const clock = shiftedClock();
const workspaces: Workspace[] = [];

let upstream: ScriptedUpstream;
let server: TestServer;
let olga: Browser;
/** Begun first, as a device waits 5 s before it asks whether it was allowed. */
let signingIn: { home: Home; login: Program; userCode: string };
let beingDenied: typeof signingIn;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream), clock });
  olga = await setUp(server);
  [signingIn, beingDenied] = await Promise.all([beginLogin(server), beginLogin(server)]);
  await decideDevice(olga, signingIn.userCode);
  await olga.open(`/device?user_code=${beingDenied.userCode}`);
  await olga.press("Continue");
  await olga.press("Deny");
});

afterAll(async () => {
  for (const { login } of [signingIn, beingDenied]) await login[Symbol.asyncDispose]();
  for (const workspace of workspaces) await workspace[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** The workspace of a person at a machine of their own. */
interface Home {
  workspace: Workspace;
  configFolder: string;
  /** Runs the program to its end. */
  headrace(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /** The login at this server. */
  stored(at: TestServer): Promise<StoredLogin>;
  /** Has the stored login look as it does when its access token has run out. */
  letExpire(at: TestServer): Promise<void>;
}

function makeHome(): Home {
  const workspace = makeWorkspace();
  workspaces.push(workspace);
  const configFolder = join(workspace.directory, "home", ".config", "headrace");
  const file = () => Bun.file(join(configFolder, "login.json"));
  const read = async () => (await file().json()) as { logins: Record<string, StoredLogin> };
  return {
    workspace,
    configFolder,
    async headrace(...args) {
      await using program = startProgram(workspace, args);
      const code = await program.exitCode();
      return { code, stdout: program.stdout(), stderr: program.stderr() };
    },
    async stored(at) {
      const login = (await read()).logins[at.url];
      if (!login) throw new Error(`There is no login at ${at.url}.`);
      return login;
    },
    async letExpire(at) {
      const { logins } = await read();
      await file().write(JSON.stringify({ logins: { ...logins, [at.url]: { ...logins[at.url], expires_at: 1 } } }));
    },
  };
}

async function beginLogin(at: TestServer) {
  const home = makeHome();
  const login = startProgram(home.workspace, ["login", "--base-url", at.baseUrl]);
  const shown = await until(() => /\n {6}([A-Z]{4}-[A-Z]{4})\n/.exec(login.stderr()), "the code is shown", 30_000);
  return { home, login, userCode: shown[1] ?? "" };
}

/** Somebody new who is signed in on a machine of their own, without the wait that only a process has to go through. */
async function signedIn(at: TestServer, by: Browser, name: string): Promise<{ home: Home; browser: Browser }> {
  const browser = await invite(by, { person: { email: `${name}@example.test`, name, password } });
  const home = makeHome();
  mkdirSync(home.configFolder, { recursive: true });
  let page = "";
  const { code, stderr } = await runCommand(["login", "--open", "--base-url", at.baseUrl], {
    configFolder: home.configFolder,
    onOpenPage: (url) => {
      page = url;
      return true;
    },
    onPause: () => decideDevice(browser, new URL(page).searchParams.get("user_code") ?? ""),
  });
  if (code !== 0) throw new Error(stderr);
  return { home, browser };
}

async function statusWith(at: TestServer, accessToken: string): Promise<number> {
  return (await fetch(`${at.baseUrl}/models`, { headers: { authorization: `Bearer ${accessToken}` } })).status;
}

/** What the server says to a refresh token, as a command would present it. */
async function refreshed(at: TestServer, token: string): Promise<unknown> {
  const body = new URLSearchParams({
    ...{ grant_type: "refresh_token", client_id: commandLineAppId, refresh_token: token },
  });
  return (await fetch(`${at.url}/oauth/token`, { method: "POST", body })).json();
}

/** How often a token was asked for. */
function tokenRequests(at: TestServer): number {
  return at.logged("request").filter(({ route }) => route === "/oauth/token").length;
}

describe("headrace login", () => {
  test("tells the user to log in again after the login was revoked in the settings", async () => {
    const { home, browser } = await signedIn(server, olga, "rosa");
    expect((await home.headrace("chat", "Hi")).stdout).toBe("Hello world\n");
    await removeAccess(browser, commandLineAppId);
    expect(browser.page.text).toContain("The app no longer has access.");
    const { code, stdout, stderr } = await home.headrace("chat", "Hi");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(
      `Your login at ${server.baseUrl} has ended. Sign in again: headrace login --base-url ${server.baseUrl}`,
    );
  });

  test("revokes the login at the server on logout", async () => {
    const { home, browser } = await signedIn(server, olga, "lara");
    const { access_token, refresh_token } = await home.stored(server);
    expect(await statusWith(server, access_token)).toBe(200);
    const { code, stdout } = await home.headrace("logout");
    expect([code, stdout]).toEqual([0, `lara <lara@example.test> is signed out of ${server.baseUrl}.\n`]);
    await expect(home.stored(server)).rejects.toThrow("There is no login");
    expect(await statusWith(server, access_token)).toBe(401);
    expect(await refreshed(server, refresh_token)).toMatchObject({ error: "invalid_grant" });
    expect((await browser.open("/settings")).text).toContain("No apps. An app that wants to use models");
    expect((await home.headrace("whoami", "--base-url", server.baseUrl)).code).toBe(1);
  });
});

describe("an expired access token of headrace login", () => {
  const ownClock = shiftedClock();
  let own: TestServer;
  let home: Home;

  beforeAll(async () => {
    own = await startHeadrace({ clock: ownClock });
    ({ home } = await signedIn(own, await setUp(own), "nora"));
  });

  afterAll(() => own[Symbol.asyncDispose]());

  test("renews an expired access token once for two concurrent commands and keeps the login", async () => {
    const before = await home.stored(own);
    await home.letExpire(own);
    const asked = tokenRequests(own);
    const both = await Promise.all([home.headrace("whoami"), home.headrace("whoami", "--json")]);
    expect(both.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ]);
    expect(tokenRequests(own) - asked).toBe(1);
    const renewed = await home.stored(own);
    expect(renewed.refresh_token).not.toBe(before.refresh_token);
    expect(statSync(join(home.configFolder, "login.json")).mode & 0o777).toBe(0o600);
    // Past the time in which a server repeats its answer: what is kept must be the newest, or the next renewal ends it all.
    ownClock.shift(20);
    await home.letExpire(own);
    expect((await home.headrace("whoami")).code).toBe(0);
    expect(await statusWith(own, renewed.access_token)).toBe(200);
  });

  test("renews an access token that only the server's clock considers expired", async () => {
    ownClock.shift(3_600);
    const before = await home.stored(own);
    expect(await statusWith(own, before.access_token)).toBe(401);
    const { code, stdout } = await home.headrace("whoami", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ person: { email: "nora@example.test" }, role: "member" });
    expect((await home.stored(own)).refresh_token).not.toBe(before.refresh_token);
  });
});

describe("headrace login as a process", () => {
  test("reports a login denied in the browser, and stores nothing", async () => {
    const { home, login } = beingDenied;
    expect(await login.exitCode()).toBe(1);
    expect(login.stderr()).toContain("The sign-in was denied in the browser.");
    expect(await Bun.file(join(home.configFolder, "login.json")).exists()).toBe(false);
  });

  test("logs a person in, stores credentials readable by that user only, and uses them in other commands", async () => {
    const { home, login } = signingIn;
    expect(await login.exitCode()).toBe(0);
    const who = 'Olga Ortiz <olga@example.test>, account "First account"';
    expect(login.stdout()).toBe(`Signed in to ${server.baseUrl} as ${who}.\n`);
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    expect(modeOf(join(home.configFolder, "login.json"))).toBe(0o600);
    expect(modeOf(home.configFolder)).toBe(0o700);

    const outcomes = await Promise.all([
      home.headrace("whoami"),
      home.headrace("keys", "create", "laptop"),
      home.headrace("chat", "Hi"),
      home.headrace("apps", "create", "Notes", "--redirect-uri", "https://notes.example/callback"),
    ]);
    expect(outcomes.map(({ code, stderr }) => [code, code === 0 || stderr])).toEqual(outcomes.map(() => [0, true]));
    const [whoami, key, chat, app] = outcomes.map(({ stdout }) => stdout);
    // An operator, but a login does not operate.
    expect(whoami).toContain("Olga Ortiz <olga@example.test>\n");
    expect(whoami).toMatch(/Role +owner/);
    expect(key).toMatch(/^sk_dev_hr_[0-9A-Za-z]{36}\n$/);
    expect(await statusWith(server, key?.trim() ?? "")).toBe(200);
    expect(chat).toBe("Hello world\n");
    expect(app).toMatch(/^hrs_\S+\n$/);

    const [apps, ended] = [await home.headrace("apps", "list"), await home.headrace("logout")];
    expect(apps.stdout).toContain("Notes");
    expect(ended.code).toBe(0);
    expect((await home.headrace("whoami", "--base-url", server.baseUrl)).stderr).toContain("headrace login");
    // What was made while signed in is not the login's.
    expect(await statusWith(server, key?.trim() ?? "")).toBe(200);
  });
});
