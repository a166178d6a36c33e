// Tests `headrace apps` with a server that answers in the form of the API.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ApiServer, now, pageOf, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { generateApiKey } from "../../domain/api-key.ts";

interface FakeApp {
  id: string;
  name: string;
  [field: string]: unknown;
}

const secret = `hrs_${"aB3-_".repeat(9).slice(0, 43)}`;

let api: ApiServer;
let apps: FakeApp[];

function fakeApp(fields: Partial<FakeApp> & { name: string }): FakeApp {
  const id = `app_${fields.name}`;
  return {
    object: "app",
    id,
    client_id: id,
    homepage_url: null,
    type: "confidential",
    redirect_uris: ["https://notes.example/callback"],
    scopes: ["chat:write", "models:read"],
    environment: "live",
    require_pkce: false,
    publisher: "Web shop",
    created_by: "usr_1",
    created_at: now - 3 * 3600,
    secrets: [{ id: "sec_1", last4: "AbC1", created_at: now - 3 * 3600, expires_at: null }],
    ...fields,
  };
}

beforeEach(() => {
  api = startApiServer();
  apps = [];
  api.answer = (method, path, url) => {
    if (method === "POST" && path === "/apps") {
      const made = fakeApp(api.seen.at(-1)?.body as FakeApp);
      return Response.json({ ...made, ...(made["type"] === "public" ? { secrets: [] } : { client_secret: secret }) });
    }
    if (path === "/apps") return Response.json(pageOf(apps, url));
    const [, id = "", action] = /^\/apps\/([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
    if (id === "") return undefined;
    const found = apps.find((one) => one.id === decodeURIComponent(id));
    if (!found) return refusal(404, "not_found", "There is no such app.");
    if (action === "usage") return Response.json({ object: "list", data: [], next: null });
    if (action === "rotate-secret") return Response.json({ ...found, client_secret: secret });
    if (method === "DELETE") return Response.json({ object: "app", id: found.id, deleted: true });
    if (method === "PATCH") Object.assign(found, api.seen.at(-1)?.body);
    return Response.json(found);
  };
});

afterEach(() => api.stop());

function run(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key };
  return runCommand(["apps", ...args], { nowMs: now * 1000, ...surroundings, env });
}

const sent = (method: string) => api.seen.filter((request) => request.method === method);

describe("headrace apps list", () => {
  test("lists apps of all pages as a table", async () => {
    apps = [fakeApp({ name: "Notes" }), fakeApp({ name: "Phone\x1b[2J", type: "public" }), fakeApp({ name: "c" })];
    expect(await run(["list"])).toEqual({
      code: 0,
      stderr: "",
      stdout: [
        "NAME      TYPE          CREATED  CLIENT ID",
        "Notes     confidential  3 h ago  app_Notes",
        "Phone[2J  public        3 h ago  app_Phone[2J",
        "c         confidential  3 h ago  app_c",
        "",
      ].join("\n"),
    });
    expect(JSON.parse((await run(["list", "--json"])).stdout)).toEqual(apps);
  });

  test("tells how to register an app if there is none", async () => {
    const { code, stdout, stderr } = await run(["list"]);
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toContain("headrace apps create <name>");
  });
});

describe("the app named by an argument", () => {
  beforeEach(() => {
    apps = [
      fakeApp({ name: "Notes" }),
      fakeApp({ id: "app_2", name: "Twin" }),
      fakeApp({ id: "app_3", name: "Twin" }),
      fakeApp({ id: "app_4", name: "app_of_mine" }),
    ];
  });

  test.each([
    ["app_Notes", "app_Notes"],
    ["Notes", "app_Notes"],
    ["app_3", "app_3"],
    ["app_of_mine", "app_4"],
  ])("resolves the argument %p to the app %p", async (wanted, id) => {
    expect(JSON.parse((await run(["show", wanted, "--json"])).stdout).id).toBe(id);
  });

  test("lists the ids of several apps with the same name, and changes none", async () => {
    const { code, stderr } = await run(["delete", "Twin", "--yes"]);
    expect(code).toBe(1);
    for (const id of ["app_2", "app_3"]) expect(stderr).toContain(`${id}  confidential  Twin`);
    expect(sent("DELETE")).toEqual([]);
  });

  test("reports a missing app and names headrace apps list", async () => {
    const { code, stderr } = await run(["show", "nobody"]);
    expect(code).toBe(1);
    expect(stderr).toContain("No app fits `nobody`");
    expect(stderr).toContain("headrace apps list");
  });

  test.each(["show", "create", "update", "rotate-secret", "delete", "usage"])(
    "refuses an API key as an argument of apps %s without repeating it",
    async (command) => {
      const key = generateApiKey("live");
      const { code, stdout, stderr } = await run([command, key, ...(command === "update" ? ["--name", "x"] : [])]);
      expect(code).toBe(2);
      expect(stdout + stderr).not.toContain(key.slice(11));
      expect(api.seen).toEqual([]);
    },
  );
});

test("shows everything about an app but the secret", async () => {
  apps = [
    fakeApp({
      name: "Notes",
      homepage_url: "https://notes.example/",
      redirect_uris: ["https://notes.example/callback", "http://127.0.0.1/cb"],
      secrets: [
        { id: "sec_1", last4: "AbC1", created_at: now - 86_400 * 3, expires_at: now + 3600 },
        { id: "sec_2", last4: "AbC2", created_at: now - 60, expires_at: null },
      ],
    }),
  ];
  expect((await run(["show", "Notes"])).stdout).toBe(
    [
      "Notes  confidential",
      "",
      "  Client ID     app_Notes",
      "  Publisher     Web shop",
      "  Home page     https://notes.example/",
      "  Environment   live",
      "  Scopes        chat:write, models:read",
      "  PKCE          not required",
      "  Redirects to  https://notes.example/callback",
      "                http://127.0.0.1/cb",
      "  Created       2026-11-20 15:30 (3 h ago) by usr_1",
      "  Secret        hrs_…AbC1, made 2026-11-17 18:30 (3 days ago), ends 2026-11-20 19:30 (in 1 h)",
      "  Secret        hrs_…AbC2, made 2026-11-20 18:29 (1 min ago)",
      "",
    ].join("\n"),
  );
});

describe("headrace apps create", () => {
  test("prints only the secret of a new app to standard output, and the client id to standard error", async () => {
    const { code, stdout, stderr } = await run(["create", "Notes", "--redirect-uri", "https://notes.example/callback"]);
    expect([code, stdout]).toEqual([0, `${secret}\n`]);
    expect(stderr).toContain('App "Notes" (app_Notes) is registered: confidential, live, chat:write, models:read.');
    expect(stderr).toContain("the only time the secret is shown");
    expect(stderr).toContain("Its client id is app_Notes.");
    expect(stderr).not.toContain(secret);
    expect(sent("POST").map(({ body }) => body)).toEqual([
      { name: "Notes", redirect_uris: ["https://notes.example/callback"] },
    ]);
  });

  test("prints no notes with --quiet, and everything with --json", async () => {
    expect(await run(["create", "Notes", "--quiet"])).toEqual({ code: 0, stdout: `${secret}\n`, stderr: "" });
    const { stdout, stderr } = await run(["create", "Notes", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ client_id: "app_Notes", client_secret: secret });
    expect(stderr).toBe("");
  });

  test("prints the client id of a new public app, which has no secret", async () => {
    const { stdout } = await run(["create", "Phone", "--public"]);
    expect(stdout).toBe("app_Phone\n");
    expect(sent("POST")[0]?.body).toEqual({ name: "Phone", type: "public" });
  });

  test("sends every setting of a new app under the API's name", async () => {
    const uris = ["--redirect-uri", "https://a.example/", "--redirect-uri", "com.example.a:/cb"];
    const more = ["--homepage", "https://a.example/about", "--scopes", "chat:read, usage:read", "--require-pkce"];
    const tools = ["--tools", "crm,github/read_*"];
    expect((await run(["create", "A", ...uris, ...more, ...tools])).code).toBe(0);
    expect(sent("POST")[0]?.body).toEqual({
      name: "A",
      redirect_uris: ["https://a.example/", "com.example.a:/cb"],
      homepage_url: "https://a.example/about",
      scopes: ["chat:read", "usage:read"],
      tools: ["crm", "github/read_*"],
      require_pkce: true,
    });
  });

  test("prints the API's reason if creating an app fails", async () => {
    api.answer = () => refusal(400, "invalid_request", "redirect_uris[0]: must have no fragment.");
    const { code, stdout, stderr } = await run(["create", "A", "--redirect-uri", "https://a.example/#"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("redirect_uris[0]: must have no fragment. (400)");
  });
});

describe("headrace apps update", () => {
  beforeEach(() => {
    apps = [fakeApp({ name: "Notes", homepage_url: "https://notes.example/" })];
  });

  test("sends only the named changes of an app", async () => {
    const { code, stdout } = await run(["update", "Notes", "--name", "Notes 2", "--no-require-pkce"]);
    expect(code).toBe(0);
    expect(sent("PATCH")).toMatchObject([{ path: "/apps/app_Notes", body: { name: "Notes 2", require_pkce: false } }]);
    expect(stdout).toStartWith("Notes 2  confidential\n");
  });

  test("replaces an app's addresses as a whole, and clears them with none", async () => {
    const uris = ["--redirect-uri", "https://b.example/1", "--redirect-uri", "https://b.example/2"];
    await run(["update", "Notes", ...uris]);
    await run(["update", "Notes", "--redirect-uri", "none", "--homepage", "none"]);
    expect(sent("PATCH").map(({ body }) => body)).toEqual([
      { redirect_uris: ["https://b.example/1", "https://b.example/2"] },
      { redirect_uris: [], homepage_url: null },
    ]);
  });

  test("refuses an update of an app without changes", async () => {
    const { code, stderr } = await run(["update", "Notes"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Nothing to change");
    expect(api.seen).toEqual([]);
  });
});

describe("headrace apps rotate-secret", () => {
  beforeEach(() => {
    apps = [fakeApp({ name: "Notes" })];
  });

  test("prints only the new secret, and how long the old one remains valid", async () => {
    const { stdout, stderr } = await run(["rotate-secret", "Notes", "--overlap", "12h"]);
    expect(stdout).toBe(`${secret}\n`);
    expect(stderr).toContain("The old secret works until 2026-11-21 06:30 (in 12 h).");
    expect(sent("POST")).toMatchObject([{ path: "/apps/app_Notes/rotate-secret", body: { overlap_seconds: 43_200 } }]);
  });

  test("sends no overlap by default when rotating a secret", async () => {
    const { stderr } = await run(["rotate-secret", "Notes"]);
    expect(sent("POST")[0]?.body).toEqual({});
    expect(stderr).toContain("works until 2026-11-21 18:30 (in 24 h)");
    expect(await run(["rotate-secret", "Notes", "-q"])).toEqual({ code: 0, stdout: `${secret}\n`, stderr: "" });
  });

  test("asks before rotating a secret without an overlap", async () => {
    expect((await run(["rotate-secret", "Notes", "--overlap", "0"])).code).toBe(2);
    expect((await run(["rotate-secret", "Notes", "--overlap", "0"], { isTTY: true, answers: ["no"] })).code).toBe(1);
    expect(sent("POST")).toEqual([]);
    const { stderr } = await run(["rotate-secret", "Notes", "--overlap", "0", "--yes"]);
    expect(sent("POST")[0]?.body).toEqual({ overlap_seconds: 0 });
    expect(stderr).toContain("The old secret works no more.");
  });
});

describe("headrace apps delete", () => {
  beforeEach(() => {
    apps = [fakeApp({ name: "Notes" })];
  });

  test("asks before deleting an app, with its name and the consequences", async () => {
    const { code, stdout, stderr } = await run(["delete", "Notes"], { isTTY: true, answers: ["y"] });
    expect(code).toBe(0);
    expect(stderr).toContain('Delete app "Notes" (app_Notes)? It loses its access');
    expect(stdout).toBe('App "Notes" (app_Notes) is deleted.\n');
    expect(sent("DELETE").map(({ path }) => path)).toEqual(["/apps/app_Notes"]);
  });

  test.each([["n"], [""], []])("deletes no app without a clear yes (%p)", async (...answers) => {
    const { code, stderr } = await run(["delete", "Notes"], { isTTY: true, answers });
    expect(code).toBe(1);
    expect(stderr).toContain("Nothing was changed.");
    expect(sent("DELETE")).toEqual([]);
  });

  test("refuses to delete an app without a terminal, and does not ask with --yes", async () => {
    expect((await run(["delete", "Notes"])).code).toBe(2);
    expect(sent("DELETE")).toEqual([]);
    const { code, stdout } = await run(["delete", "Notes", "--yes", "--json"]);
    expect([code, JSON.parse(stdout)]).toEqual([0, { object: "app", id: "app_Notes", deleted: true }]);
  });
});

test("requests the usage of one app with the given bucket and group", async () => {
  apps = [fakeApp({ name: "Notes" })];
  const { code, stderr } = await run(["usage", "Notes", "--bucket", "month", "--group-by", "model"]);
  expect([code, stderr]).toEqual([0, "Nothing was used in that time.\n"]);
  expect(api.seen.at(-1)?.path).toBe("/apps/app_Notes/usage?bucket=month&group_by=model");
});
