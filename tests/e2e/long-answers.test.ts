// Answers that are longer than one key may hold reach their client as they come; what has to be read as a whole is refused once.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { openRaw } from "../hostile/raw-client.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const [texts, numbers] = [2_048, 1_536];
const pictureBytes = 4_000_000;
let upstream: ScriptedUpstream;
let server: TestServer;
/** The most that was held at any time of a test. */
let maxHeld = 0;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({
    yaml: `
upstreams:
  - { name: up, url: "${upstream.url}", apis: [chat] }
guardrails:
  - { name: keys, kind: secrets, action: block, sides: [answer] }
models:
  - { id: images, deployments: [{ upstream: up, model: upstream-model }], capabilities: { images: true } }
  - { id: guarded, deployments: [{ upstream: up, model: upstream-model }], policies: { guardrails: [keys] } }
`,
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function ask(path: string, body: object): Promise<{ status: number; headers: Headers; text: string }> {
  maxHeld = 0;
  upstream.requests.length = 0;
  const timer = setInterval(() => {
    maxHeld = Math.max(maxHeld, bufferedBytes.total);
  }, 1);
  const response = await server.request(path, { body });
  const text = await response.text();
  clearInterval(timer);
  return { status: response.status, headers: response.headers, text };
}

/** Writes pieces of a list with back-pressure. */
const answersList =
  (before: string, items: number, item: (index: number) => string, behind: string): Script =>
  async (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write(before);
    for (let i = 0; i < items && !response.destroyed; i++) {
      if (response.write(`${i > 0 ? "," : ""}${item(i)}`)) continue;
      await new Promise<void>((resolve) => {
        const goOn = () => {
          response.off("drain", goOn).off("close", goOn);
          resolve();
        };
        response.on("drain", goOn).on("close", goOn);
      });
    }
    response.end(behind);
  };

const vector = Array.from({ length: numbers }, (_, n) => Math.fround(Math.sin(n)));
const numbersJson = JSON.stringify(vector);
const embeddings = answersList(
  '{"object":"list","data":[',
  texts,
  (index) => `{"object":"embedding","index":${index},"embedding":${numbersJson}}`,
  `],"model":"upstream-model","usage":{"prompt_tokens":${texts},"total_tokens":${texts}}}`,
);
const input = Array.from({ length: texts }, (_, n) => `text ${n}`);

async function usageOf(path: string): Promise<unknown> {
  await server.governance.ledger.flush();
  const list = (await (await server.request("/v1/requests?limit=1")).json()) as { data: Record<string, unknown>[] };
  const [{ outcome, prompt_tokens } = {}] = list.data;
  return { path, outcome, prompt_tokens };
}

test.each(["float", "base64", undefined])(
  "passes on embeddings of 2,048 texts with 1,536 numbers each, encoding %s",
  async (encoding) => {
    upstream.script(embeddings);
    const body = { model: "upstream-model", input, ...(encoding && { encoding_format: encoding }) };
    const { status, headers, text } = await ask("/v1/embeddings", body);
    expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
    const answer = JSON.parse(text) as { data: { index: number; embedding: number[] | string }[]; usage: object };
    expect(answer).toMatchObject({ object: "list", model: "upstream-model", usage: { prompt_tokens: texts } });
    expect(answer.data.map(({ index }) => index)).toEqual(input.map((_, n) => n));
    const last = answer.data.at(-1)?.embedding ?? "";
    const read = typeof last === "string" ? [...new Float32Array(Buffer.from(last, "base64").buffer.slice(0))] : last;
    expect(typeof last).toBe(encoding === "base64" ? "string" : "object");
    if (typeof last !== "string") expect(read).toEqual(vector);
    expect(upstream.requests).toHaveLength(1);
    expect(maxHeld).toBeLessThan(16e6);
    expect(await usageOf("/v1/embeddings")).toMatchObject({ outcome: "completed", prompt_tokens: texts });
  },
);

test("passes on ten images of 4 MB and books them", async () => {
  const picture = "iVBORw0KGgo".padEnd(pictureBytes, "A");
  upstream.script(answersList('{"created":1,"data":[', 10, () => `{"b64_json":"${picture}"}`, "]}"));
  const { status, text } = await ask("/v1/images/generations", { model: "images", prompt: "A boat", n: 10 });
  expect(status).toBe(200);
  const { data } = JSON.parse(text) as { data: { b64_json: string }[] };
  expect(data.map(({ b64_json }) => b64_json.length)).toEqual(Array.from({ length: 10 }, () => pictureBytes));
  expect(maxHeld).toBeLessThan(16e6);
  expect(await usageOf("/v1/images/generations")).toMatchObject({ outcome: "completed" });
});

test("aborts an endless embeddings list and books the input", async () => {
  upstream.script(async (request, response) => {
    await answersList('{"data":[', 600, (n) => `{"index":${n},"embedding":${numbersJson}}`, "")(request, response);
  });
  const asked = ask("/v1/embeddings", { model: "upstream-model", input });
  expect(
    await asked.then(
      ({ text }) => text.length,
      () => "broken off",
    ),
  ).toBe("broken off");
  expect(await usageOf("/v1/embeddings")).toMatchObject({ outcome: "failed" });
});

test("applies back-pressure to the model server for a client that does not read", async () => {
  let sent = 0;
  upstream.script(async (request, response) => {
    const count = (n: number) => {
      sent = n;
      return `{"index":${n},"embedding":${numbersJson}}`;
    };
    await answersList('{"data":[', texts, count, '],"usage":{"prompt_tokens":1,"total_tokens":1}}')(request, response);
  });
  const client = await openRaw(server.url);
  client.socket.pause();
  const body = JSON.stringify({ model: "upstream-model", input });
  const fields = `Host: h\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json`;
  await client.write(`POST /v1/embeddings HTTP/1.1\r\n${fields}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  await until(() => sent > 100, "a part was sent");
  let before = -1;
  await until(async () => {
    if (sent === before) return true;
    before = sent;
    await Bun.sleep(200);
    return false;
  }, "the model server waits");
  expect(sent).toBeLessThan(texts - 1);
  expect(bufferedBytes.total).toBeLessThan(16e6);
  client.socket.destroy();
  await until(() => bufferedBytes.total === 0, "nothing is held");
});

test("refuses an answer too long for guardrails to read, with one model call and no retry advice", async () => {
  const text = "word ".repeat(9_000_000);
  upstream.script((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const message = { role: "assistant", content: text };
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
  });
  const body = { model: "guarded", max_tokens: 200_000, messages: [{ role: "user", content: "Write" }] };
  const { status, headers, text: reported } = await ask("/v1/chat/completions", body);
  expect([status, headers.get("retry-after"), headers.get("x-should-retry")]).toEqual([502, null, "false"]);
  expect(reported).toContain("limits.held_bytes");
  expect(upstream.requests).toHaveLength(1);
});
