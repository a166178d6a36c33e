// Tests how commands find the server and its key, and list its models, with a real HTTP server.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";

const key = "sk_dev_hr_abc";
const data = [
  {
    id: "tiny-demo",
    object: "model",
    created: 1,
    owned_by: "headrace",
    capabilities: { chat: true, completion: true, embeddings: false },
    context_length: 1024,
    later: "kept",
  },
  { id: "llama3.1:8b", object: "model", created: 2, owned_by: "ollama" },
];

let answer: (request: Request) => Response;
let paths: string[];
let server: Bun.Server<undefined>;
let dataDir: string;

beforeEach(async () => {
  paths = [];
  answer = (request) =>
    request.headers.get("authorization") === `Bearer ${key}`
      ? Response.json({ object: "list", data })
      : Response.json({ error: { message: "Invalid API key provided", type: "x", code: "y" } }, { status: 401 });
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      paths.push(new URL(request.url).pathname);
      return answer(request);
    },
  });
  dataDir = await mkdtemp(join(tmpdir(), "headrace-cli-models-"));
});

afterEach(async () => {
  await server.stop(true);
  await rm(dataDir, { recursive: true, force: true });
});

const baseUrl = () => `http://127.0.0.1:${server.port}/v1`;

function models(args: string[] = [], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  return runCommand(["models", "--data-dir", dataDir, ...args], surroundings);
}

function writeCredentials(content: unknown = { base_url: baseUrl(), api_key: key }): Promise<void> {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return writeFile(join(dataDir, "credentials.json"), text, { mode: 0o600 });
}

describe("headrace models", () => {
  test("lists models as a table", async () => {
    await writeCredentials();
    expect(await models()).toEqual({
      code: 0,
      stderr: "",
      stdout: [
        "MODEL        CAPABILITIES      CONTEXT  OWNER",
        "tiny-demo    chat, completion  1024     headrace",
        "llama3.1:8b  -                 -        ollama",
        "",
      ].join("\n"),
    });
    expect(paths).toEqual(["/v1/models", "/v1/model-status"]);
  });

  test("prints percentiles of the answers that each upstream gave, below the models", async () => {
    await writeCredentials();
    const times = { p50: 320, p95: 900.4, p99: 1_200 };
    const deployment = { upstream: "gpu-1", state: "ok", percentiles: { first_token_ms: null, total_ms: times } };
    const status = {
      object: "list",
      data: [{ id: "llama", deployments: [deployment, { ...deployment, percentiles: null }] }],
    };
    const list = answer;
    answer = (request) => (request.url.endsWith("/model-status") ? Response.json(status) : list(request));
    const { stdout } = await models();
    expect(stdout).toContain("Last 15 minutes, p50/p95/p99:");
    expect(stdout).toMatch(/^llama +gpu-1 +- +320\/900\/1,200 ms$/m);
    expect(stdout.match(/gpu-1/g)).toHaveLength(1);
  });

  test("prints the API's data with unknown fields with --json", async () => {
    await writeCredentials();
    expect(JSON.parse((await models(["--json"])).stdout)).toEqual(data);
  });

  test("tells how to get a model if the list is empty", async () => {
    await writeCredentials();
    answer = () => Response.json({ object: "list", data: [] });
    const { code, stdout, stderr } = await models();
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toContain("headrace pull");
  });
});

describe("server and key of a command", () => {
  test("prefers server and key of the environment to the file", async () => {
    await writeCredentials({ base_url: "http://127.0.0.1:1/v1", api_key: "sk_dev_hr_other" });
    const env = { HEADRACE_BASE_URL: `${baseUrl()}/`, HEADRACE_API_KEY: key };
    expect((await models([], { env })).code).toBe(0);
  });

  test("prefers server and key of flag and standard input to the environment", async () => {
    const env = { HEADRACE_BASE_URL: "http://127.0.0.1:1/v1", HEADRACE_API_KEY: "sk_dev_hr_other" };
    const outcome = await models(["--base-url", baseUrl(), "--api-key-stdin"], { env, stdin: `${key}\n` });
    expect(outcome.code).toBe(0);
  });

  test("never sends the file's key to another server", async () => {
    await writeCredentials({ base_url: "http://127.0.0.1:1/v1", api_key: key });
    const { code, stderr } = await models(["--base-url", baseUrl()]);
    expect(code).toBe(1);
    expect(stderr).toContain("No API key is known for");
    expect(paths).toEqual([]);
  });

  test("never sends the key to a redirect's target", async () => {
    await writeCredentials();
    answer = () => Response.redirect("http://127.0.0.1:1/v1/models", 307);
    const { code, stderr } = await models();
    expect(code).toBe(1);
    expect(stderr).toContain("redirects elsewhere (307)");
  });
});

describe("remedies in errors of commands", () => {
  test("tells what to do if nothing is configured", async () => {
    const { code, stderr } = await models();
    expect(code).toBe(1);
    expect(stderr).toBe(
      `error: No server is configured. Start one with headrace serve, which writes ${dataDir}/credentials.json, sign in to one with headrace login --base-url https://…/v1, or set HEADRACE_BASE_URL and HEADRACE_API_KEY.\n`,
    );
  });

  test("tells what to do if no server runs", async () => {
    await writeCredentials();
    const address = baseUrl();
    await server.stop(true);
    const { code, stderr } = await models();
    expect(code).toBe(1);
    expect(stderr).toBe(`error: No server answers at ${address} (ECONNREFUSED). Start it with: headrace serve\n`);
  });

  test("tells what to do with a refused key by its source, without the key", async () => {
    await writeCredentials({ base_url: baseUrl(), api_key: "sk_dev_hr_wrong" });
    const { code, stderr } = await models();
    expect(code).toBe(1);
    expect(stderr).toContain(`refused the API key from ${dataDir}/credentials.json (401)`);
    expect(stderr).not.toContain("sk_dev_hr_wrong");
  });

  test("tells what to do if something else answers", async () => {
    await writeCredentials({ base_url: `http://127.0.0.1:${server.port}`, api_key: key });
    answer = () => new Response("<html>", { status: 404 });
    expect((await models()).stderr).toContain("The base URL of a Headrace ends in /v1.");
    answer = () => Response.json({ hello: "world" });
    expect((await models()).stderr).toContain("JSON that is no model list");
  });

  test("prints the API's own explanation", async () => {
    await writeCredentials();
    answer = () => Response.json({ error: { message: "API key lacks required scope: models:read" } }, { status: 403 });
    expect((await models()).stderr).toContain("API key lacks required scope: models:read (403)");
  });

  test("tells what to do with a damaged credentials.json", async () => {
    await writeCredentials("{");
    expect((await models()).stderr).toContain("credentials.json is damaged");
  });

  test("tells what to do with a key that no header may contain, without the key", async () => {
    const { stderr } = await models([], { env: { HEADRACE_API_KEY: "sk dev\nhr" } });
    expect(stderr).toContain("The API key from HEADRACE_API_KEY has blanks");
    expect(stderr).not.toContain("sk dev");
  });

  test("tells what to do with a wrong flag, with exit code 2", async () => {
    expect((await models(["--base-url", "localhost:7545"])).code).toBe(2);
    expect((await models(["--api-key-stdin"])).code).toBe(2);
    expect((await models(["--api-key", "x"])).code).toBe(2);
  });
});
