// `headrace login` and `logout` against an authorization server.
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

describe("login", () => {
  test("login asks for all scopes of an account, shows page and code, and says who is signed in where", async () => {
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

  test("login keeps the login for its owner alone, by the server's origin", async () => {
    await login();
    expect(stored()).toEqual({
      [server.root]: {
        base_url: `${server.root}/v1`,
        access_token: "access-1",
        // From the request on: 5 s after the command began.
        expires_at: nowMs / 1000 + 5 + 3600,
        refresh_token: "refresh-1",
        person: { id: "usr_1", email: "ada@example.com", name: "Ada Lovelace" },
        account: server.account,
      },
    });
    expect(statSync(join(folder, "login.json")).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test("login asks no faster than the server allows, and slower when told to", async () => {
    server.device = { interval: 7 };
    server.outcomes = ["authorization_pending", "slow_down", "authorization_pending", "slow_down"];
    const pauses: number[] = [];
    expect((await login([], { onPause: (ms) => void pauses.push(ms) })).code).toBe(0);
    expect(pauses).toEqual([7_000, 7_000, 12_000, 12_000, 17_000]);
  });

  test("login asks every 5 s where the server says nothing, and less often while it is away", async () => {
    server.device = { interval: undefined };
    server.outcomes = ["authorization_pending", 503, 429];
    const pauses: number[] = [];
    expect((await login([], { onPause: (ms) => void pauses.push(ms) })).code).toBe(0);
    expect(pauses).toEqual([5_000, 5_000, 10_000, 20_000]);
  });

  test("login ends when the code has expired, by its own clock too", async () => {
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
  ])("login ends when the server says %s", async (outcome, message) => {
    server.outcomes = ["authorization_pending", outcome];
    const { code, stderr } = await login();
    expect([code, isStored()]).toEqual([1, false]);
    expect(stderr).toContain(message);
    expect(polls()).toHaveLength(2);
  });

  test("login is given up with Ctrl-C, with nothing kept", async () => {
    server.outcomes = ["authorization_pending"];
    const onPause = () => void (polls().length === 1 && process.emit("SIGINT", "SIGINT"));
    const { code, stderr } = await login([], { onPause });
    expect([code, polls().length, isStored()]).toEqual([130, 1, false]);
    expect(stderr).toContain("Interrupted. You are not signed in.");
  });

  test("login leaves no login behind at the server that nobody here has", async () => {
    server.onRequest = (path) => {
      if (path === "/v1/session") process.emit("SIGINT", "SIGINT");
      return undefined;
    };
    expect((await login()).code).toBe(130);
    expect([server.revoked, isStored()]).toEqual([["refresh-1"], false]);
  });

  test("login ends the earlier login at the same server, which nobody has any more", async () => {
    await login();
    expect((await login()).code).toBe(0);
    expect(server.revoked).toEqual(["refresh-1"]);
    expect(stored()[server.root].refresh_token).toBe("refresh-2");
  });

  test("login is another's account only if that was chosen: otherwise it is ended", async () => {
    expect((await login(["--account", "Engines"])).code).toBe(0);
    expect((await login(["--account", "acct_1"])).code).toBe(0);
    const { code, stderr } = await login(["--account", "Looms"]);
    expect(code).toBe(1);
    expect(stderr).toContain('choose the account "Looms" there');
    expect(stderr).toContain('You chose the account "Engines" (acct_1) in the browser, not "Looms".');
    expect(server.revoked).toEqual(["refresh-1", "refresh-3"]);
    expect(stored()[server.root].refresh_token).toBe("refresh-2");
  });

  test("login opens a page only when asked to, the one with the code in it", async () => {
    const pages: string[] = [];
    const onOpenPage = (url: string) => pages.push(url) > 0;
    await login([], { onOpenPage });
    expect(pages).toEqual([]);
    await login(["--open"], { onOpenPage });
    expect(pages).toEqual([`${server.root}/device?user_code=BCDF-GHJK`]);
    expect((await login(["--open"])).stderr).toContain("No browser could be started here");
  });

  test("login draws only for whoever watches", async () => {
    const watched = await login([], { isTTY: true, env: { NO_COLOR: "1" } });
    expect(watched.stderr).toContain("⠋ Waiting; the code is good for 10 min 00 s");
    expect(watched.stderr).toContain("\r\x1b[2K");
    const unwatched = await login();
    expect(unwatched.stderr).toContain("Waiting; the code is good for 10 min 00 s.\n");
    expect(unwatched.stderr + unwatched.stdout).not.toContain("\r");
  });

  test("login lets no text of the server command the terminal", async () => {
    server.person.name = "Ada\x1b[2J";
    server.account.name = "En\x1b]0;gines\x07";
    server.device = { user_code: "BC\x1b[1A" };
    const { stdout, stderr } = await login();
    expect((stdout + stderr).replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });

  test("login says which variables come before it", async () => {
    const { stderr } = await login([], { env: { HEADRACE_API_KEY: "sk_live_hr_x" } });
    expect(stderr).toContain("Commands look at HEADRACE_API_KEY first");
  });

  test("login is at the server of the last login where none is named", async () => {
    await login();
    const { code, stdout } = await run(["login"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Signed in to ${server.root}/v1`)]);
  });
});

describe("a server gets no code of a person", () => {
  test.each([
    ["that is known by another name", { issuer: "https://bank.example" }, "known as https://bank.example"],
    ["whose tokens are made elsewhere", { token_endpoint: "https://evil.example/token" }, "token_endpoint"],
    ["that is told of elsewhere", { device_authorization_endpoint: "http://127.0.0.1:1/" }, "not its own"],
    ["that revokes elsewhere", { revocation_endpoint: "javascript:0" }, "revocation_endpoint"],
    ["that has no sign-in for devices", { device_authorization_endpoint: undefined }, "device_authorization_endpoint"],
  ])("a server %s gets no code of a person", async (_what, metadata, message) => {
    server.metadata = metadata;
    const { code, stderr } = await login();
    expect([code, isStored(), server.seen.length]).toEqual([1, false, 1]);
    expect(stderr).toContain(message);
  });

  test.each([
    ["verification_uri", "https://evil.example/device"],
    ["verification_uri", "javascript:alert(1)"],
    ["verification_uri_complete", "file:///etc/passwd"],
  ])("a server whose %s is %s gets no code of a person", async (name, page) => {
    server.device = { [name]: page };
    const { code, stderr } = await login(["--open"]);
    expect([code, polls().length]).toEqual([1, 0]);
    expect(stderr).toContain("names a page that is not its own");
    expect(stderr).not.toContain("BCDF");
  });

  test("a server that is no Headrace with people gets no code of a person", async () => {
    server.onRequest = () => new Response("nothing here", { status: 404 });
    expect((await login()).stderr).toContain(`${server.root} offers no sign-in (404)`);
  });

  test("a server that cannot be reached gets no code of a person", async () => {
    await server.stop();
    expect(await login()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`No server answers at ${server.root}`),
    });
  });
});

describe("a file of logins", () => {
  test("a file of logins that is damaged is told before anybody goes to a browser", async () => {
    await login();
    writeFileSync(join(folder, "login.json"), "{");
    server.seen.length = 0;
    const { code, stderr } = await login();
    expect([code, server.seen]).toEqual([1, []]);
    expect(stderr).toContain(`${join(folder, "login.json")} is damaged`);
  });

  test("a file of logins that was open to others is closed", async () => {
    await login();
    chmodSync(join(folder, "login.json"), 0o644);
    chmodSync(folder, 0o755);
    await login();
    expect(statSync(join(folder, "login.json")).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test("a file of logins cannot be kept where a file is in the way, and the login is ended", async () => {
    writeFileSync(join(parent, "config"), "");
    const { code, stderr } = await login();
    expect([code, server.revoked]).toEqual([1, ["refresh-1"]]);
    expect(stderr).toContain(`Logins cannot be stored in ${folder}`);
  });

  test("a file of logins is where the system keeps settings", () => {
    const of = (env: Record<string, string>, platform: NodeJS.Platform) =>
      configFolder({ HOME: "/h", ...env }, platform);
    expect(of({}, "linux")).toBe("/h/.config/headrace");
    expect(of({ XDG_CONFIG_HOME: "/x" }, "linux")).toBe("/x/headrace");
    expect(of({ XDG_CONFIG_HOME: "x" }, "linux")).toBe("/h/.config/headrace");
    expect(of({}, "darwin")).toBe("/h/Library/Application Support/headrace");
    expect(of({ APPDATA: "/roaming" }, "win32")).toBe("/roaming/headrace");
  });
});

describe("logout", () => {
  test("logout ends the login at the server and here", async () => {
    await login();
    const { code, stdout, stderr } = await run(["logout"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(`Ada Lovelace <ada@example.com> is signed out of ${server.root}/v1.\n`);
    expect(server.seen.at(-1)).toBe(
      "POST /oauth/revoke token=refresh-1&token_type_hint=refresh_token&client_id=headrace-cli",
    );
    expect(stored()).toEqual({});
  });

  test("logout forgets the login also when the server cannot be told, and says what stays", async () => {
    await login();
    await server.stop();
    const { code, stderr } = await run(["logout"]);
    expect(code).toBe(1);
    expect(stderr).toContain("is deleted here, but the server could not be reached (No server answers at");
    expect(stderr).toContain(`revoke the command line tool at ${server.root}/settings`);
    expect(stored()).toEqual({});
  });

  test("logout with --local tells the server nothing, and says so", async () => {
    await login();
    server.seen.length = 0;
    const { code, stderr } = await run(["logout", "--local"]);
    expect([code, server.seen, stored()]).toEqual([0, [], {}]);
    expect(stderr).toContain("At the server the login stays valid");
  });

  test("logout is of the server that is named, else of the last login, and names the next", async () => {
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

  test("logout of nobody is said and does nothing", async () => {
    expect(await run(["logout"])).toEqual({ code: 0, stdout: "", stderr: "You are not signed in.\n" });
  });
});
