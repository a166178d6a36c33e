// Describes how the doctor asks a model server for its models: as its settings say, and it tells which formats there
// are.
import { expect, test } from "bun:test";
import { checkFile } from "../config/check-file.ts";
import { reloadableConfig } from "../config/file-config.ts";
import { readYaml } from "../config/read-yaml.ts";
import type { Subject } from "./subject.ts";
import { judge, upstreamProbes } from "./upstreams.ts";

/** The findings for a server that answers so, under these settings besides its name and URL. */
async function findings(answer: (request: Request) => Response, settings: string, models = "") {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  const text = `upstreams:\n  - { name: up, url: "http://127.0.0.1:${server.port}/v1", api_key: k-123, ${settings} }\n${models}`;
  const { data, problems } = checkFile(readYaml(text, "headrace.yaml", {}));
  expect(problems).toEqual([]);
  const subject = { config: reloadableConfig(data, []) as Subject["config"] };
  const looks = await Promise.all(upstreamProbes(subject).map(({ probe }) => probe(AbortSignal.timeout(5_000))));
  return looks.flatMap(judge);
}

const list = () => Response.json({ data: [{ id: "m" }] });
const missing = () => new Response("", { status: 404 });

test("checks a server with OpenAI's API by its header and query, and for its formats", async () => {
  const found = await findings((request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (request.headers.get("api-key") !== "k-123" || searchParams.get("v") !== "1") {
      return new Response("", { status: 401 });
    }
    if (request.method === "GET") return list();
    return pathname === "/v1/responses" ? new Response("", { status: 400 }) : missing();
  }, 'key_header: api-key, query: { v: "1" }');
  expect(found).toMatchObject([
    { level: "ok", found: expect.stringMatching(/^1 model in \d+ ms, chat, responses: m$/) },
  ]);
});

test("checks a server with Anthropic's API in Anthropic's form", async () => {
  const found = await findings((request) => {
    const { headers, url } = request;
    const isRight = headers.get("x-api-key") === "k-123" && headers.get("anthropic-version") === "2023-06-01";
    return isRight && url.endsWith("/v1/models?limit=1000") ? list() : missing();
  }, "api: messages");
  expect(found).toMatchObject([{ level: "ok", found: expect.stringMatching(/^1 model in \d+ ms, messages: m$/) }]);
});

test("reports a missing path of a server with a correction", async () => {
  const found = await findings(missing, "api: openai");
  expect(found).toMatchObject([{ level: "failure", remedy: expect.stringContaining("api: messages") }]);
});

test("reports declared capabilities without a path at the server, with the models and a remedy", async () => {
  const asked: string[] = [];
  const found = await findings(
    (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models") return list();
      asked.push(`${request.method} ${pathname}`);
      return pathname === "/v1/rerank" || pathname === "/tokenize" ? new Response("{}", { status: 400 }) : missing();
    },
    "apis: [chat]",
    `models:
  - id: ranker
    capabilities: { rerank: true, tokenize: true, moderation: true, realtime: true, decisions: false }
    deployments: [{ upstream: up, model: m }]
`,
  );
  expect(found).toMatchObject([
    { level: "ok" },
    {
      level: "warning",
      name: "up moderation",
      found: expect.stringMatching(/^said of m, and .* has no \/moderations$/),
    },
    { level: "warning", name: "up realtime", remedy: expect.stringContaining("realtime: false") },
  ]);
  expect(asked).not.toContain("POST /v1/decisions");
});
