// Tests `headrace login` and `logout` with an authorization server.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { type SignInServer, startSignInServer } from "../../../tests/fixtures/sign-in-server.ts";
import { configFolder } from "../terminal/config-folder.ts";

const nowMs = 1_800_000_000_000;

let server: SignInServer;
let folder: string;
let parent: string;

beforeEach(() => {
  server = startSignInServer();
  parent = mkdtempSync(join(tmpdir(), "headrace-login-"));
  folder = join(parent, "config", "headrace");
});

afterEach(async () => {
  await server.stop();
  rmSync(parent, { recursive: true, force: true });
});

function run(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  return runCommand(args, { nowMs, configFolder: folder, ...surroundings });
}

const login = (args: string[] = [], surroundings: CommandSurroundings = {}) =>
  run(["login", "--base-url", `${server.root}/v1`, ...args], surroundings);
const stored = () => JSON.parse(readFileSync(join(folder, "login.json"), "utf8")).logins;
const isStored = () => existsSync(join(folder, "login.json"));
const polls = () => server.seen.filter((line) => line.includes("grant-type%3Adevice_code"));

describe("headrace login", () => {
  test("requests all scopes of an account, shows page and code, and names the signed-in user and server", async () => {
    const { code, stdout, stderr } = await login();
    expect([code, stdout]).toEqual([
      0,
      `Signed in to ${server.root}/v1 as Ada Lovelace <ada@example.com>, account "Engines".\n`,
    ]);
    expect(stderr).toContain(`      ${server.root}/device\n`);
    expect(stderr).toContain("      BCDF-GHJK\n");
    expect(server.seen.slice(0, 3)).toEqual([
      "GET /.well-known/oauth-authorization-server",
      "POST /oauth/device_authorization client_id=headrace-cli&scope=chat%3Aread+chat%3Awrite+models%3Aread+usage%3Aread+tools%3Ause+keys%3Amanage",
      "POST /oauth/token grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=device-1&client_id=headrace-cli",
    ]);
    expect(stdout + stderr).not.toMatch(/access-|refresh-|device-1/);
  });

  test("stores a login by the server's origin, for its owner alone", async () => {
    await login();
    expect(stored()).toEqual({
      [server.root]: {
        base_url: `${server.root}/v1`,
        access_token: "access-1",
        // The lifetime counts from the request, 5 s after the command began.
        expires_at: nowMs / 1000 + 5 + 3600,
        refresh_token: "refresh-1",
        person: { id: "usr_1", email: "ada@example.com", name: "Ada Lovelace" },
        account: server.account,
      },
    });
    expect(statSync(join(folder, "login.json")).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test("polls no faster than the server allows, and slower on demand", async () => {
    server.device = { interval: 7 };
    server.outcomes = ["authorization_pending", "slow_down", "authorization_pending", "slow_down"];
    const pauses: number[] = [];
    expect((await login([], { onPause: (ms) => void pauses.push(ms) })).code).toBe(0);
    expect(pauses).toEqual([7_000, 7_000, 12_000, 12_000, 17_000]);
  });

  test("polls every 5 s by default, and less often while the server is unavailable", async () => {
    server.device = { interval: undefined };
    server.outcomes = ["authorization_pending", 503, 429];
    const pauses: number[] = [];
    expect((await login([], { onPause: (ms) => void pauses.push(ms) })).code).toBe(0);
    expect(pauses).toEqual([5_000, 5_000, 10_000, 20_000]);
  });

  test("ends the login when the code expires by its own clock too", async () => {
    server.device = { expires_in: 12 };
    server.outcomes = Array<string>(10).fill("authorization_pending");
    const pauses: number[] = [];
    const { code, stdout, stderr } = await login([], { onPause: (ms) => void pauses.push(ms) });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("The code has expired. For another one: headrace login");
    expect([pauses, polls().length, isStored()]).toEqual([[5_000, 5_000, 2_000], 2, false]);
  });

  test.each([
    ["expired_token", "The code has expired. For another one: headrace login"],
    ["access_denied", "The sign-in was denied in the browser."],
    ["invalid_client", "it is invalid_client (400)"],
  ])("ends the login when the server answers %s", async (outcome, message) => {
    server.outcomes = ["authorization_pending", outcome];
    const { code, stderr } = await login();
    expect([code, isStored()]).toEqual([1, false]);
    expect(stderr).toContain(message);
    expect(polls()).toHaveLength(2);
  });

  test("cancels the login with Ctrl-C and stores nothing", async () => {
    server.outcomes = ["authorization_pending"];
    const onPause = () => void (polls().length === 1 && process.emit("SIGINT", "SIGINT"));
    const { code, stderr } = await login([], { onPause });
    expect([code, polls().length, isStored()]).toEqual([130, 1, false]);
    expect(stderr).toContain("Interrupted. You are not signed in.");
  });

  test("ends a login at the server if Ctrl-C prevents its storage", async () => {
    server.onRequest = (path) => {
      if (path === "/v1/session") process.emit("SIGINT", "SIGINT");
      return undefined;
    };
    expect((await login()).code).toBe(130);
    expect([server.revoked, isStored()]).toEqual([["refresh-1"], false]);
  });

  test("ends an earlier login at the same server", async () => {
    await login();
    expect((await login()).code).toBe(0);
    expect(server.revoked).toEqual(["refresh-1"]);
    expect(stored()[server.root].refresh_token).toBe("refresh-2");
  });

  test("ends a login for another account than the requested one", async () => {
    expect((await login(["--account", "Engines"])).code).toBe(0);
    expect((await login(["--account", "acct_1"])).code).toBe(0);
    const { code, stderr } = await login(["--account", "Looms"]);
    expect(code).toBe(1);
    expect(stderr).toContain('choose the account "Looms" there');
    expect(stderr).toContain('You chose the account "Engines" (acct_1) in the browser, not "Looms".');
    expect(server.revoked).toEqual(["refresh-1", "refresh-3"]);
    expect(stored()[server.root].refresh_token).toBe("refresh-2");
  });

  test("opens a browser only on request, at the page with the code", async () => {
    const pages: string[] = [];
    const onOpenPage = (url: string) => pages.push(url) > 0;
    await login([], { onOpenPage });
    expect(pages).toEqual([]);
    await login(["--open"], { onOpenPage });
    expect(pages).toEqual([`${server.root}/device?user_code=BCDF-GHJK`]);
    expect((await login(["--open"])).stderr).toContain("No browser could be started here");
  });

  test("draws progress only on a terminal", async () => {
    const watched = await login([], { isTTY: true, env: { NO_COLOR: "1" } });
    expect(watched.stderr).toContain("⠋ Waiting; the code is good for 10 min 00 s");
    expect(watched.stderr).toContain("\r\x1b[2K");
    const unwatched = await login();
    expect(unwatched.stderr).toContain("Waiting; the code is good for 10 min 00 s.\n");
    expect(unwatched.stderr + unwatched.stdout).not.toContain("\r");
  });

  test("escapes terminal commands in the server's text", async () => {
    server.person.name = "Ada\x1b[2J";
    server.account.name = "En\x1b]0;gines\x07";
    server.device = { user_code: "BC\x1b[1A" };
    const { stdout, stderr } = await login();
    expect((stdout + stderr).replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });

  test("names variables that take precedence over the login", async () => {
    const { stderr } = await login([], { env: { HEADRACE_API_KEY: "sk_live_hr_x" } });
    expect(stderr).toContain("Commands look at HEADRACE_API_KEY first");
  });

  test("uses the server of the last login by default", async () => {
    await login();
    const { code, stdout } = await run(["login"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Signed in to ${server.root}/v1`)]);
  });
});

describe("servers that must not receive a login", () => {
  test.each([
    ["that is known by another name", { issuer: "https://bank.example" }, "known as https://bank.example"],
    ["whose tokens are made elsewhere", { token_endpoint: "https://evil.example/token" }, "token_endpoint"],
    ["that is told of elsewhere", { device_authorization_endpoint: "http://127.0.0.1:1/" }, "not its own"],
    ["that revokes elsewhere", { revocation_endpoint: "javascript:0" }, "revocation_endpoint"],
    ["that has no sign-in for devices", { device_authorization_endpoint: undefined }, "device_authorization_endpoint"],
  ])("refuses to log in at a server %s", async (_what, metadata, message) => {
    server.metadata = metadata;
    const { code, stderr } = await login();
    expect([code, isStored(), server.seen.length]).toEqual([1, false, 1]);
    expect(stderr).toContain(message);
  });

  test.each([
    ["verification_uri", "https://evil.example/device"],
    ["verification_uri", "javascript:alert(1)"],
    ["verification_uri_complete", "file:///etc/passwd"],
  ])("refuses to log in at a server whose %s is %s", async (name, page) => {
    server.device = { [name]: page };
    const { code, stderr } = await login(["--open"]);
    expect([code, polls().length]).toEqual([1, 0]);
    expect(stderr).toContain("names a page that is not its own");
    expect(stderr).not.toContain("BCDF");
  });

  test("reports a server without a sign-in", async () => {
    server.onRequest = () => new Response("nothing here", { status: 404 });
    expect((await login()).stderr).toContain(`${server.root} offers no sign-in (404)`);
  });

  test("reports a server that cannot be reached on login", async () => {
    await server.stop();
    expect(await login()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`No server answers at ${server.root}`),
    });
  });
});

describe("the file of logins", () => {
  test("reports a damaged file of logins before the sign-in", async () => {
    await login();
    writeFileSync(join(folder, "login.json"), "{");
    server.seen.length = 0;
    const { code, stderr } = await login();
    expect([code, server.seen]).toEqual([1, []]);
    expect(stderr).toContain(`${join(folder, "login.json")} is damaged`);
  });

  test("closes a file of logins that was open to others", async () => {
    await login();
    chmodSync(join(folder, "login.json"), 0o644);
    chmodSync(folder, 0o755);
    await login();
    expect(statSync(join(folder, "login.json")).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test("ends the login if its folder cannot be created", async () => {
    writeFileSync(join(parent, "config"), "");
    const { code, stderr } = await login();
    expect([code, server.revoked]).toEqual([1, ["refresh-1"]]);
    expect(stderr).toContain(`Logins cannot be stored in ${folder}`);
  });

  test("stores logins in the system's folder for settings", () => {
    const of = (env: Record<string, string>, platform: NodeJS.Platform) =>
      configFolder({ HOME: "/h", ...env }, platform);
    expect(of({}, "linux")).toBe("/h/.config/headrace");
    expect(of({ XDG_CONFIG_HOME: "/x" }, "linux")).toBe("/x/headrace");
    expect(of({ XDG_CONFIG_HOME: "x" }, "linux")).toBe("/h/.config/headrace");
    expect(of({}, "darwin")).toBe("/h/Library/Application Support/headrace");
    expect(of({ APPDATA: "/roaming" }, "win32")).toBe("/roaming/headrace");
  });
});

describe("headrace logout", () => {
  test("ends the login at the server and locally", async () => {
    await login();
    const { code, stdout, stderr } = await run(["logout"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(`Ada Lovelace <ada@example.com> is signed out of ${server.root}/v1.\n`);
    expect(server.seen.at(-1)).toBe(
      "POST /oauth/revoke token=refresh-1&token_type_hint=refresh_token&client_id=headrace-cli",
    );
    expect(stored()).toEqual({});
  });

  test("deletes the login locally if the server is unreachable, and tells what remains", async () => {
    await login();
    await server.stop();
    const { code, stderr } = await run(["logout"]);
    expect(code).toBe(1);
    expect(stderr).toContain("is deleted here, but the server could not be reached (No server answers at");
    expect(stderr).toContain(`revoke the command line tool at ${server.root}/settings`);
    expect(stored()).toEqual({});
  });

  test("does not contact the server with --local, and says so", async () => {
    await login();
    server.seen.length = 0;
    const { code, stderr } = await run(["logout", "--local"]);
    expect([code, server.seen, stored()]).toEqual([0, [], {}]);
    expect(stderr).toContain("At the server the login stays valid");
  });

  test("ends the login of the named or last server, and names the next one", async () => {
    const other = startSignInServer();
    try {
      await login();
      await run(["login", "--base-url", `${other.root}/v1`]);
      const { stderr } = await run(["logout"]);
      expect([other.revoked, server.revoked]).toEqual([["refresh-1"], []]);
      expect(stderr).toBe(`Commands use your login at ${server.root}/v1 from now on.\n`);
      expect((await run(["logout", "--base-url", `${other.root}/v1`])).stderr).toContain(`but at ${server.root}/v1`);
      await run(["logout", "--base-url", `${server.root}/v1`]);
      expect(server.revoked).toEqual(["refresh-1"]);
    } finally {
      await other.stop();
    }
  });

  test("reports that there is no login to end", async () => {
    expect(await run(["logout"])).toEqual({ code: 0, stdout: "", stderr: "You are not signed in.\n" });
  });
});
