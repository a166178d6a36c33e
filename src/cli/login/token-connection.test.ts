// Tests commands with a stored login: which credential they use, and how its token is renewed.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiServer, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { type SignInServer, startSignInServer } from "../../../tests/fixtures/sign-in-server.ts";

const nowMs = 1_800_000_000_000;

let server: SignInServer;
let folder: string;
let parent: string;

beforeEach(() => {
  server = startSignInServer();
  server.accessToken = "access-0";
  server.refreshTokens.add("refresh-0");
  parent = mkdtempSync(join(tmpdir(), "headrace-logins-"));
  folder = join(parent, "headrace");
  mkdirSync(folder);
});

afterEach(async () => {
  await server.stop();
  rmSync(parent, { recursive: true, force: true });
});

function run(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_DATA_DIR: join(parent, "data"), ...surroundings.env };
  return runCommand(args, { nowMs, configFolder: folder, ...surroundings, env });
}

/** Stores logins at these servers, the last one newest. Their access tokens last for `secondsLeft` more seconds. */
function signedIn(secondsLeft: number, roots = [server.root]): void {
  const one = (root: string) => ({
    base_url: `${root}/v1`,
    access_token: "access-0",
    expires_at: nowMs / 1000 + secondsLeft,
    refresh_token: "refresh-0",
    person: { id: "usr_1", email: "ada@example.com", name: "Ada" },
    account: { id: "acct_1", name: "Engines" },
  });
  const logins = Object.fromEntries(roots.map((root) => [root, one(root)]));
  writeFileSync(join(folder, "login.json"), JSON.stringify({ logins }));
}

const stored = () => JSON.parse(readFileSync(join(folder, "login.json"), "utf8")).logins[server.root];
const renewals = () => server.seen.filter((line) => line.includes("grant_type=refresh_token"));

describe("the access token of a login", () => {
  test("uses an access token unchanged while it is valid", async () => {
    signedIn(61);
    expect(await run(["models"])).toMatchObject({ code: 0, stdout: expect.stringContaining("tiny-demo") });
    expect(server.seen).toEqual(["GET /v1/models", "GET /v1/model-status"]);
  });

  test("renews an access token within a minute of its end, and stores it for its owner alone", async () => {
    signedIn(60);
    expect((await run(["models"])).code).toBe(0);
    expect(renewals()).toEqual([
      "POST /oauth/token grant_type=refresh_token&refresh_token=refresh-0&client_id=headrace-cli",
    ]);
    expect(stored()).toMatchObject({
      access_token: "access-1",
      refresh_token: "refresh-1",
      expires_at: nowMs / 1000 + 3600,
      person: { id: "usr_1" },
    });
    expect(statSync(join(folder, "login.json")).mode & 0o777).toBe(0o600);
  });

  test("renews an access token once for many concurrent commands", async () => {
    signedIn(-5);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => run(["models"])));
    expect(outcomes.map(({ code }) => code)).toEqual(Array(8).fill(0));
    expect(renewals()).toHaveLength(1);
  });

  test("replaces an access token that is refused before its end, once", async () => {
    signedIn(3000);
    server.accessToken = "of another address";
    expect((await run(["models"])).code).toBe(0);
    expect(renewals()).toHaveLength(1);
    server.seen.length = 0;
    const always = new Response('{"error":{"message":"no"}}', { status: 401 });
    server.onRequest = (path) => (path === "/v1/models" ? always.clone() : undefined);
    const { code, stderr } = await run(["models"]);
    expect([code, renewals().length]).toEqual([1, 1]);
    expect(stderr).toContain(`refused your login at ${server.root}/v1 (401). Sign in again: headrace login --base-url`);
  });

  test("repeats a renewal whose answer was lost", async () => {
    signedIn(0);
    server.onRequest = (path) => {
      return path === "/oauth/token" && renewals().length === 1 ? new Response('{"access_tok') : undefined;
    };
    expect((await run(["models"])).code).toBe(0);
    expect(renewals()).toEqual(Array(2).fill(renewals()[0]));
  });

  test("stores a renewed access token despite Ctrl-C, as the previous one is void", async () => {
    signedIn(0);
    server.onRequest = (path) => {
      if (path === "/oauth/token") process.emit("SIGINT", "SIGINT");
      return undefined;
    };
    expect((await run(["models"])).code).toBe(130);
    expect(stored().refresh_token).toBe("refresh-1");
    expect(server.seen).not.toContain("GET /v1/models");
  });
});

describe("an ended login", () => {
  beforeEach(() => {
    signedIn(0);
    server.refreshTokens.clear();
  });

  test("asks to sign in again after a login has ended, and uses no other credential", async () => {
    mkdirSync(join(parent, "data"));
    const credentials = { base_url: `${server.root}/v1`, api_key: "access-0" };
    writeFileSync(join(parent, "data", "credentials.json"), JSON.stringify(credentials));
    const { code, stderr } = await run(["models"]);
    expect([code, stderr]).toEqual([
      1,
      `error: Your login at ${server.root}/v1 has ended. Sign in again: headrace login --base-url ${server.root}/v1\n`,
    ]);
    expect(server.seen).not.toContain("GET /v1/models");
  });

  test("reports an ended login in headrace status", async () => {
    server.onRequest = (path) =>
      path === "/readyz" ? Response.json({ status: "ready", checks: { database: "ok" } }) : undefined;
    const { code, stdout, stderr } = await run(["status"]);
    expect(code).toBe(1);
    expect(stdout).toContain(`refused, from your login at ${server.root}/v1`);
    expect(stderr).toContain("has ended");
  });

  test("distinguishes an ended login from a temporarily unavailable server", async () => {
    server.onRequest = (path) => (path === "/oauth/token" ? new Response("", { status: 503 }) : undefined);
    const { stderr } = await run(["models"]);
    expect(stderr).toContain("(503)");
    expect(stderr).not.toContain("has ended");
    expect(renewals()).toHaveLength(1);
  });
});

describe("the credential of a command", () => {
  let local: ApiServer;
  const usedBy = async (args: string[], surroundings?: CommandSurroundings) => {
    const seen = server.seen.length;
    local.seen.length = 0;
    await run(["models", ...args], surroundings);
    if (server.seen.length > seen) return "login";
    return local.seen.some(({ authorization }) => authorization === `Bearer ${local.key}`) ? "key" : "none";
  };

  beforeEach(() => {
    local = startApiServer();
    mkdirSync(join(parent, "data"));
    const credentials = { base_url: local.baseUrl, api_key: local.key };
    writeFileSync(join(parent, "data", "credentials.json"), JSON.stringify(credentials));
    signedIn(3600);
  });

  afterEach(() => local.stop());

  test("prefers a login newer than credentials.json", async () => {
    expect(await usedBy([])).toBe("login");
  });

  test("uses credentials.json after a logout", async () => {
    await run(["logout"]);
    expect(await usedBy([])).toBe("key");
  });

  test("uses the credential of the named server", async () => {
    expect(await usedBy(["--base-url", local.baseUrl])).toBe("key");
    expect(await usedBy(["--base-url", `${server.root}/v1`])).toBe("login");
    expect(await usedBy([], { env: { HEADRACE_BASE_URL: local.baseUrl } })).toBe("key");
    expect(await usedBy(["--base-url", "http://127.0.0.1:9/v1"])).toBe("none");
  });

  test("uses the newest of several logins by default", async () => {
    signedIn(3600, ["http://127.0.0.1:9", server.root]);
    expect(await usedBy([])).toBe("login");
    signedIn(3600, [server.root, "http://127.0.0.1:9"]);
    expect(await usedBy([])).toBe("none");
  });

  test("uses the credential of the named data directory", async () => {
    expect(await usedBy(["--data-dir", join(parent, "data")])).toBe("key");
    expect(await usedBy(["--data-dir", join(parent, "elsewhere")])).toBe("none");
  });

  test("uses only an explicitly given key", async () => {
    const env = { HEADRACE_API_KEY: local.key };
    expect(await usedBy([], { env })).toBe("key");
    expect(await usedBy(["--api-key-stdin"], { stdin: local.key })).toBe("key");
    await run(["models", "--base-url", `${server.root}/v1`], { env });
    expect(server.seen).toEqual(["GET /v1/models", "GET /v1/model-status"]);
    expect(renewals()).toEqual([]);
  });
});

describe("headrace whoami", () => {
  test("prints user, account, role, scopes, server and expiry", async () => {
    signedIn(3600);
    const { code, stdout } = await run(["whoami"]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        `  Server       ${server.root}/v1`,
        "  Person       Ada Lovelace <ada@example.com>",
        `  From         your login at ${server.root}/v1`,
        "  Account      Engines (acct_1)",
        "  Role         owner",
        "  Environment  live",
        "  Scopes       chat:write, models:read",
        "  Token        until 2027-01-15 09:00 (in 1 h), renewed by itself",
        "",
      ].join("\n"),
    );
  });

  test("calls a user an operator only with a credential that may operate", async () => {
    signedIn(3600);
    expect(server.person.is_operator).toBe(true);
    expect((await run(["whoami"])).stdout).not.toContain("operator");
    server.scopes = ["chat:write", "admin:manage"];
    expect((await run(["whoami"])).stdout).toContain("  Person       Ada Lovelace <ada@example.com>, operator\n");
  });

  test("prints one object without a secret with --json", async () => {
    signedIn(3600);
    const { stdout } = await run(["whoami", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      base_url: `${server.root}/v1`,
      source: `your login at ${server.root}/v1`,
      person: server.person,
      account: server.account,
      role: "owner",
      key: null,
      environment: "live",
      scopes: ["chat:write", "models:read"],
      expires_at: nowMs / 1000 + 3600,
    });
    expect(stdout).not.toMatch(/access-|refresh-/);
  });

  describe("headrace whoami of a key", () => {
    let api: ApiServer;
    const forbidden = (scope: string) =>
      Response.json({ error: { message: `API key lacks required scope: ${scope}` } }, { status: 403 });
    const whoami = (args: string[] = []) =>
      run(["whoami", ...args], { env: { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key } });

    beforeEach(() => {
      api = startApiServer();
      api.answer = (_method, path) => {
        if (path === "/session") return Response.json({ error: { message: "For people." } }, { status: 403 });
        return path === "/account" ? Response.json({ id: "acct_2", name: "Looms", environment: "live" }) : undefined;
      };
    });
    afterEach(() => api.stop());

    test("prints which key it is", async () => {
      const { code, stdout } = await whoami();
      expect(code).toBe(0);
      expect(stdout).toContain(`  Key          sk_live_hr_…${api.key.slice(-4)} "own" (key_own)\n`);
      expect(stdout).toContain("  From         HEADRACE_API_KEY\n");
      expect(stdout).toContain("  Account      Looms (acct_2)\n");
      expect(stdout).toContain("  Expires      never\n");
    });

    test("names what a key may not read about itself", async () => {
      api.answer = (_method, path) => forbidden(path);
      const { code, stdout } = await whoami();
      expect(code).toBe(0);
      expect(stdout).toContain("  Key      not to be seen without the scope keys:manage\n");
      expect(stdout).toContain("  Account  not to be seen without the scope usage:read\n");
      expect(JSON.parse((await whoami(["--json"])).stdout)).toMatchObject({ key: null, account: null, scopes: null });
    });

    test("fails for a refused key", async () => {
      api.answer = () => undefined;
      const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: "sk_live_hr_wrong" };
      const { code, stderr } = await run(["whoami"], { env });
      expect(code).toBe(1);
      expect(stderr).toContain("refused the API key from HEADRACE_API_KEY (401)");
    });
  });
});
