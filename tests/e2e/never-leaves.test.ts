// Requests of keys that never leave: through every way that there is from a request to a server, not a byte goes to a cloud.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import {
  chatScript,
  chunk,
  json,
  type Script,
  type ScriptedUpstream,
  startUpstream,
} from "../support/scripted-upstream.ts";

/** A cloud that lists its models, takes whatever else comes, and answers nothing. */
let cloud: Server;
let cloudBytes = 0;
let own: ScriptedUpstream;
let server: TestServer;
let staying: string;

const list = JSON.stringify({
  object: "list",
  data: [{ id: "there", object: "model", created: 1, owned_by: "llamacpp" }],
});
const listed = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${list.length}\r\nconnection: close\r\n\r\n${list}`;

const yamlOf = (at: string) => `
upstreams:
  - { name: own, url: "${own.url}", local: true, discover: false, apis: [chat] }
  - { name: cloud, url: "${at}/v1", discover: false, apis: [chat] }
guardrails:
  - { name: judged, kind: judge, model: cloud-alone, policy: Nothing., otherwise: pass, timeout_seconds: 0.3 }
  - { name: outside, kind: http, url: "${at}/check", otherwise: pass, timeout_seconds: 0.3 }
  - { name: outside-answers, kind: http, sides: [answer], url: "${at}/check", otherwise: pass, timeout_seconds: 0.3 }
models:
  - { id: cloud-alone, deployments: [{ upstream: cloud, model: there }] }
  - { id: own-alone, deployments: [{ upstream: own, model: here }] }
  - { id: both, deployments: [{ upstream: own, model: here }, { upstream: cloud, model: there, weight: 100 }] }
  - { id: overflowing, policies: { overflow: { to: [{ upstream: cloud }], hours: ["00:00-24:00"] } }, deployments: [{ upstream: own, model: here }, { upstream: cloud, model: there, weight: 100 }] }
  - { id: falling, fallbacks: [cloud-alone], deployments: [{ upstream: own, model: here }] }
  - { id: continued, policies: { continuation: true, overflow: { to: [{ upstream: cloud }] } }, deployments: [{ upstream: own, model: here }, { upstream: cloud, model: there }] }
  - { id: shadowed, policies: { shadow: { model: cloud-alone, percent: 100 } }, deployments: [{ upstream: own, model: here }] }
  - { id: split, policies: { split: [{ model: cloud-alone, percent: 100 }] }, deployments: [{ upstream: own, model: here }] }
  - { id: cached, policies: { cache: { requests: all, semantic: { model: cloud-alone, threshold: 0.9 } } }, deployments: [{ upstream: own, model: here }] }
  - { id: guarded-judge, policies: { guardrails: [judged] }, deployments: [{ upstream: own, model: here }] }
  - { id: guarded-http, policies: { guardrails: [outside] }, deployments: [{ upstream: own, model: here }] }
  - { id: guarded-answers, policies: { guardrails: [outside-answers] }, deployments: [{ upstream: own, model: here }] }
`;

let at: string;

beforeAll(async () => {
  cloud = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data: Buffer) => {
      if (data.subarray(0, 4).toString() === "GET ") socket.end(listed);
      else {
        cloudBytes += data.length;
        socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => cloud.listen(0, "127.0.0.1", resolve));
  at = `http://127.0.0.1:${(cloud.address() as { port: number }).port}`;
  own = await startUpstream();
  server = await startHeadrace({ yaml: yamlOf(at) });
  staying = await mintKey(server.dataDir, { scopes: ["chat:write"], neverLeaves: true });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await own[Symbol.asyncDispose]();
  cloud.close();
});
beforeEach(() => {
  own.script(chatScript());
  cloudBytes = 0;
});

async function ask(
  model: string,
  key: string,
  { path = "/v1/chat/completions", stream = false } = {},
): Promise<number> {
  const text = `What is ${crypto.randomUUID()}?`;
  const bodies: Record<string, object> = {
    "/v1/chat/completions": { messages: [{ role: "user", content: text }] },
    "/v1/responses": { input: text },
    "/v1/responses/input_tokens": { input: text },
    "/v1/messages": { max_tokens: 9, messages: [{ role: "user", content: text }] },
    "/v1/completions": { prompt: text, max_tokens: 9 },
    "/v1/embeddings": { input: text },
  };
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, ...(stream && { stream }), ...bodies[path] }),
  });
  await response.text();
  return response.status;
}

const broken: Script = (_, response) => json(response, 500, { error: { message: "out of order" } });
const cutAfter =
  (events: number): Script =>
  (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let i = 0; i < events; i++) response.write(chunk({ content: "one " }));
    setTimeout(() => response.destroy(), 5);
  };

const ways: readonly [name: string, model: string, script?: Script, stream?: boolean][] = [
  ["the model's other deployment", "both", broken],
  ["a model that is in the cloud alone", "cloud-alone"],
  ["the overflow of a model", "overflowing", broken],
  ["a model that stands in", "falling", broken],
  ["the rest of a stream that was cut", "continued", cutAfter(2), true],
  ["a stream that was cut before anything of it came", "continued", cutAfter(0), true],
  ["a shadow", "shadowed"],
  ["a split", "split"],
  ["the embedding of the cache", "cached"],
  ["the judge of a guardrail", "guarded-judge"],
  ["the service of a guardrail", "guarded-http"],
  ["the service of a guardrail that looks at answers alone", "guarded-answers"],
];

test.each(ways)(
  "sends no byte by way of %s for a key that must stay local, but does so for another key",
  async (_, model, script = chatScript(), stream = false) => {
    own.script(script);
    for (let i = 0; i < 3; i++) await ask(model, staying, { stream });
    // What is done beside a request comes a moment later.
    await Bun.sleep(100);
    expect(cloudBytes).toBe(0);
    await until(async () => {
      await ask(model, server.key, { stream });
      await Bun.sleep(20);
      return cloudBytes > 0;
    }, "a request of another key goes out");
  },
);

test("asks no guardrail service about requests that must stay local unless it is marked as local", async () => {
  for (const model of ["guarded-http", "guarded-answers"]) expect(await ask(model, staying)).toBe(200);
  expect(cloudBytes).toBe(0);
  await server.reconfigure(yamlOf(at).replaceAll("kind: http,", "kind: http, local: true,"));
  expect(await ask("guarded-http", staying)).toBe(200);
  expect(cloudBytes).toBeGreaterThan(0);
  await server.reconfigure(yamlOf(at));
  cloudBytes = 0;
  expect(await ask("guarded-http", staying)).toBe(200);
  expect(cloudBytes).toBe(0);
});

test("sends no byte out for a key that must stay local in any format, streamed or whole, despite failures", async () => {
  let asked = 0;
  own.script((request, response) => {
    const scripts = [broken, cutAfter(2), cutAfter(0), chatScript()];
    return (scripts[asked++ % scripts.length] as Script)(request, response);
  });
  const paths = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses/input_tokens",
  ];
  const models = [...new Set(ways.map(([, model]) => model))];
  const all = models.flatMap((model) =>
    paths.flatMap((path) => [true, false].map((stream) => ({ model, path, stream }))),
  );
  await Promise.all(all.map(({ model, ...how }) => ask(model, staying, how)));
  await Bun.sleep(200);
  expect(cloudBytes).toBe(0);
  expect(own.requests.length).toBeGreaterThan(20);
}, 60_000);
