// Paths, methods and Host headers that somebody made up: refused plainly, never let through.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { head, type RawAnswer, raw, rawUntilClosed } from "./raw-client.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.serves([
    { id: "upstream-model", object: "model" },
    { id: "org/model", object: "model" },
    { id: "odd %2f?#é", object: "model" },
  ]);
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function ask(method: string, target: string, withKey = true, more: readonly string[] = []): Promise<RawAnswer> {
  const key = withKey ? [`Authorization: Bearer ${server.key}`] : [];
  // Without a body: what a request would cost is not the question here.
  const { answers } = await raw(
    server.url,
    head(`${method} ${target} HTTP/1.1`, ["Host: 127.0.0.1", ...key, ...more]),
    2_000,
  );
  return answers[0] ?? { status: 0, headers: {}, body: "" };
}

function errorOf(answer: RawAnswer): { code?: string; message?: string } {
  return (JSON.parse(answer.body) as { error: { code: string; message: string } }).error;
}

describe("unknown paths", () => {
  test.each([
    "/v1",
    "/v1/",
    "/v1/nope",
    "/v2/models",
    "/V1/models",
    "/v1/Models",
    "/v1/chat",
    "/v1/chat/completions/",
    "/v1/chat/completions/x/y",
    "/v1//models",
    "//v1/models",
    "/v1%2fmodels",
    "/%76%31/models/../..",
    "/.env",
    "/admin",
    "/healthz/",
    "/healthz/x",
    "/openapi.json%00",
    "/index.php?x=/v1/models",
  ])("answers the unknown path %s with 404 in the error format and a hint", async (target) => {
    const answer = await ask("GET", target);
    expect(answer.status).toBe(404);
    expect(errorOf(answer)).toMatchObject({ code: "not_found", message: expect.stringContaining("/docs") as never });
    expect(answer.headers["x-request-id"]).toMatch(/^req_/);
    expect(answer.headers["content-type"]).toContain("application/json");
  });

  test.each(["/mcp/", "/mcp/files/"])(
    "answers %s with 404 and the MCP address without the trailing slash",
    async (target) => {
      const { message } = errorOf(await ask("POST", target));
      expect(message).toContain(`Did you mean ${target.slice(0, -1)}? An address of MCP ends without a slash.`);
    },
  );

  test("hints at the missing version of a path", async () => {
    for (const [method, path] of [
      ["GET", "/models"],
      ["POST", "/chat/completions"],
      ["GET", "/models/upstream-model"],
    ] as const) {
      const answer = await ask(method, path);
      expect(answer.status).toBe(404);
      expect(errorOf(answer).message).toContain(`/v1${path}`);
    }
  });

  // hardening: F16
  test.each([
    ["/v1//chat/completions", "/v1/chat/completions"],
    ["/v1/v1/chat/completions", "/v1/chat/completions"],
    ["/v1/v1/v1/models", "/v1/models"],
    ["/v1/chat/completions/", "/v1/chat/completions"],
    ["/v1/models/", "/v1/models"],
    ["/api/v1/chat/completions", "/v1/chat/completions"],
    ["/api/v1/models/upstream-model", "/v1/models/upstream-model"],
    ["/openai/v1/embeddings/", "/v1/embeddings"],
    ["/openai/openai/v1/embeddings", "/v1/embeddings"],
    ["/openai/deployments/m/chat/completions?api-version=2024-10-21", "/v1/chat/completions"],
    ["//v1/models", "/v1/models"],
    ["/models/", "/v1/models"],
    ["/healthz/", "/healthz"],
    ["/keys", "/v1/keys"],
  ])("does not serve %s, and suggests %s with the base URL", async (target, meant) => {
    for (const method of ["GET", "POST"]) {
      for (const withKey of [true, false]) {
        const answer = await ask(method, target, withKey, method === "POST" ? ["Content-Length: 0"] : []);
        expect([method, withKey, answer.status]).toEqual([method, withKey, 404]);
        const { code, message } = errorOf(answer);
        expect(code).toBe("not_found");
        expect(message).toContain(` Did you mean ${meant}? The base URL for clients is ${server.url}/v1, `);
      }
    }
  });

  test("suggests a base URL without the version for clients such as Spring AI that add it", async () => {
    const twice = errorOf(await ask("POST", "/v1/v1/chat/completions", true, ["Content-Length: 0"]));
    expect(twice.message).toContain(` If your client adds /v1 itself, its base URL is ${server.url}. `);
    const once = errorOf(await ask("POST", "/chat/completions", true, ["Content-Length: 0"]));
    expect(once.message).not.toContain("adds /v1 itself");
  });

  test("serves groq's SDK paths below /openai like /v1, with the same checks", async () => {
    expect((await ask("GET", "/openai/v1/models")).status).toBe(200);
    expect((await ask("GET", "/openai/v1/models", false)).status).toBe(401);
  });

  // hardening: F16
  test("compares a path with at most as many endpoints as it has segments", async () => {
    for (const path of [`/${"v1/".repeat(2_000)}models`, "/".repeat(7_000)]) {
      const answer = await ask("GET", path);
      expect([answer.status, answer.body.length < 600]).toEqual([404, true]);
    }
  });

  // hardening: F16
  test("suggests the public base URL in production, whatever the Host", async () => {
    await using production = await startHeadrace({
      flags: { mode: "production", publicUrl: "https://ai.example.com" },
    });
    const { answers } = await raw(production.url, head("GET /api/v1/models HTTP/1.1", ["Host: evil.example"]));
    expect(answers[0]?.body).toContain("The base URL for clients is https://ai.example.com/v1,");
    expect(answers[0]?.body).not.toContain("evil.example");
  });

  test("shortens a very long or strange path in an error, as text", async () => {
    const answer = await ask("GET", `/${"a".repeat(5_000)}<script>`);
    expect(answer.status).toBe(404);
    expect(answer.body.length).toBeLessThan(400);
    expect(answer.headers["content-type"]).toContain("application/json");
    expect((await ask("GET", `/v1/models/${"m".repeat(5_000)}`)).body.length).toBeLessThan(500);
  });
});

describe("path tricks", () => {
  // Every way to write a path that some proxy would read as another one.
  const tricks = [
    "/v1/../v1/models",
    "/./v1/models",
    "/v1/./models",
    "/healthz/../v1/models",
    "/v1/models/..",
    "/%2e%2e/v1/models",
    "/v1/%2e%2e/v1/models",
    "/docs/..%2fv1/models",
    "/v1/models#fragment",
    "/v1/models;x=y",
    "/v1\\models",
  ];

  test.each(tricks)("never lists models at %s without a key", async (target) => {
    const answer = await ask("GET", target, false);
    expect([400, 401, 404]).toContain(answer.status);
  });

  test.each(tricks)("answers %s with a key by the model list, 404 or 400, never by 405", async (target) => {
    const answer = await ask("GET", target);
    expect([200, 400, 404]).toContain(answer.status);
  });

  test("does not let a path trick reach a public endpoint through a protected one, or the reverse", async () => {
    for (const target of [
      "/v1/models/../../healthz",
      "/v1/models/x/../../../healthz",
      "/v1/models/..%2f..%2fhealthz",
    ]) {
      expect([400, 401, 404]).toContain((await ask("GET", target, false)).status);
      expect((await ask("GET", target)).body).not.toContain('"status":"ok"');
    }
    // Below /docs there are pages, which are not posted to.
    for (const target of ["/healthz/../v1/chat/completions", "/docs/../v1/chat/completions"]) {
      expect([400, 401, 404, 405]).toContain((await ask("POST", target, false, ["Content-Length: 0"])).status);
    }
  });

  test.each(["%zz", "%", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c..%5cx", "%c0%ae%c0%ae", "%f0%9f%92%a9"])(
    "looks up a model id %s as text and does not find it",
    async (id) => {
      const answer = await ask("GET", `/v1/models/${id}`);
      expect(answer.status).toBe(404);
      expect(errorOf(answer).code).toBe("model_not_found");
    },
  );

  test("refuses a model id with U+0000 by the parameter's name", async () => {
    const answer = await ask("GET", "/v1/models/a%00b");
    expect(answer.status).toBe(400);
    expect(errorOf(answer).message).toStartWith("model: ");
  });

  test("finds ids with slashes and reserved characters, encoded or not", async () => {
    for (const id of ["org/model", "org%2Fmodel", "odd%20%252f%3F%23%C3%A9"]) {
      const answer = await ask("GET", `/v1/models/${id}`);
      expect([id, answer.status]).toEqual([id, 200]);
    }
  });

  test("ignores an unknown query", async () => {
    expect((await ask("GET", "/v1/models?x=%00&y=../../z")).status).toBe(200);
    expect((await ask("GET", "/v1/models/upstream-model?a=b/c#d")).status).toBe(200);
  });
});

describe("methods", () => {
  test.each([
    ["/v1/models", "GET, HEAD"],
    ["/v1/models/upstream-model", "GET, HEAD"],
    ["/v1/chat/completions", "POST, GET, HEAD"],
    ["/v1/completions", "POST"],
    ["/v1/embeddings", "POST"],
    ["/healthz", "GET, HEAD"],
    ["/readyz", "GET, HEAD"],
    ["/openapi.json", "GET, HEAD"],
    ["/docs/api", "GET, HEAD"],
  ])("answers every other method on %s with 405 and Allow: %s", async (path, allow) => {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]) {
      if (allow.split(", ").includes(method)) continue;
      const answer = await ask(method, path, true, ["Content-Length: 0"]);
      expect([method, answer.status]).toEqual([method, 405]);
      expect(answer.headers["allow"]).toBe(allow);
      expect(errorOf(answer)).toMatchObject({ code: "method_not_allowed" });
    }
  });

  test("answers every method on an unknown path with 404", async () => {
    for (const method of ["PUT", "DELETE", "OPTIONS"]) {
      expect((await ask(method, "/nope", true, ["Content-Length: 0"])).status).toBe(404);
    }
  });

  test("answers HEAD like GET without a body, and requires the same key", async () => {
    for (const path of ["/v1/models", "/v1/models/upstream-model", "/healthz", "/docs/api"]) {
      const response = await server.request(path, { method: "HEAD" });
      expect([path, response.status]).toEqual([path, 200]);
      expect(await response.text()).toBe("");
    }
    expect((await fetch(`${server.url}/v1/models`, { method: "HEAD" })).status).toBe(401);
    expect((await server.request("/v1/models/nope", { method: "HEAD" })).status).toBe(404);
  });

  test("refuses an unknown method without side effects", async () => {
    const { answers, closed } = await rawUntilClosed(
      server.url,
      head("FOO /v1/models HTTP/1.1", ["Host: 127.0.0.1", `Authorization: Bearer ${server.key}`]),
    );
    expect(closed || (answers[0]?.status ?? 0) >= 400).toBe(true);
  });
});

describe("Host headers", () => {
  test.each([
    "",
    "evil.example",
    "a b",
    "[::1",
    "%00",
    "x".repeat(5_000),
    "\xff\xfe",
    "127.0.0.1:99999999",
    "<script>",
  ])("answers public paths with a junk Host (%p) without repeating it", async (host) => {
    for (const [target, statuses] of [
      ["/healthz", [200, 400]],
      ["/docs/api", [200, 400]],
      ["/openapi.json", [200, 400]],
      ["/nope", [404, 400]],
      ["/v1/models/x", [401, 400]],
      ["/", [303, 400]],
    ] as const) {
      const { answers } = await raw(server.url, head(`GET ${target} HTTP/1.1`, [`Host: ${host}`]));
      const usual = await raw(server.url, head(`GET ${target} HTTP/1.1`, ["Host: localhost"]));
      expect(statuses as readonly number[]).toContain(answers[0]?.status as number);
      const isOurs = JSON.stringify(usual.answers[0]).includes(host);
      if (host.length > 3 && !isOurs) expect(JSON.stringify(answers[0])).not.toContain(host);
    }
  });

  test("finds the named model for a live key with a junk Host", async () => {
    await using production = await startHeadrace({
      yaml: upstreamYaml(upstream),
      flags: { mode: "production", publicUrl: "https://ai.example.com" },
    });
    const ask = async (host: string, path: string) => {
      const lines = [`Host: ${host}`, `X-API-Key: ${production.key}`];
      return (await raw(production.url, head(`GET ${path} HTTP/1.1`, lines))).answers[0]?.status;
    };
    for (const host of ["ai.example.com", "", "a b", "<script>"]) {
      expect([200, 400]).toContain((await ask(host, "/v1/models/org/model")) as number);
      expect([404, 400]).toContain((await ask(host, "/v1/models/xxx/org/model")) as number);
    }
    const old = await raw(production.url, head("GET /v1/models/org/model HTTP/1.0", [`X-API-Key: ${production.key}`]));
    expect(old.answers[0]?.status).toBe(200);
  });

  test("answers 400 to an HTTP/1.1 request without a Host", async () => {
    const { answers, closed } = await rawUntilClosed(server.url, head("GET /healthz HTTP/1.1", []));
    expect(answers[0]?.status).toBe(400);
    expect(closed).toBe(true);
  });
});
