// `headrace doctor --clients`: a server as it should be passes, and each thing that an SDK would stumble over is named.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { encodeEmbedding } from "../../src/wire/embedding.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { events, type OpenAiServer, startOpenAiServer, type WireAnswer } from "../fixtures/openai-server.ts";
import { startHeadrace } from "../support/headrace.ts";

interface Check {
  group: string;
  name: string;
  status: string;
  found: string;
  remedy: string | null;
  sent: string;
}

let api: OpenAiServer;
beforeAll(() => {
  api = startOpenAiServer();
});
beforeEach(() => {
  api.change = () => {};
});
afterAll(() => api.stop());

async function clientTest(env: Record<string, string>, args: readonly string[] = []) {
  const { code, stdout, stderr } = await runCommand(["doctor", "--clients", "--json", ...args], { env });
  const report = JSON.parse(stdout) as { ok: boolean; model: string | null; tokens: number; checks: Check[] };
  return { ...report, code, stdout, stderr, failed: report.checks.filter(({ status }) => status === "failure") };
}

const testFake = (args?: readonly string[]) =>
  clientTest({ HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key }, args);

test("passes the demo model with few tokens in the doctor's client checks", async () => {
  await using server = await startHeadrace({ demo: true });
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: server.key };
  const { code, ok, model, tokens, failed, checks } = await clientTest(env);
  expect(failed).toEqual([]);
  expect([code, ok, model]).toEqual([0, true, "tiny-demo"]);
  expect(tokens).toBeLessThan(1_000);
  const skipped = checks.filter(({ status }) => status === "skipped").map(({ name }) => name);
  expect(["browsers", "tools", "left in the middle"]).toEqual(expect.arrayContaining(skipped));
});

test("passes a correct server in the doctor's client checks, without printing the key", async () => {
  const { code, failed, checks, stdout, stderr } = await testFake();
  expect(failed).toEqual([]);
  expect(code).toBe(0);
  expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(stdout + stderr).not.toContain(api.key);
});

interface Fault {
  what: string;
  in: string;
  make(answer: WireAnswer): void;
  /** Names of the checks that find it. */
  found: readonly string[];
  as: RegExp;
}

/** Deep enough for what is changed: the parts of a body. */
const part = (answer: WireAnswer, ...path: (string | number)[]): Record<string, unknown> =>
  path.reduce((at, name) => Reflect.get(at as object, name), answer.body) as Record<string, unknown>;
const rewrite = (answer: WireAnswer, from: string | RegExp, to: string) => {
  answer.body = String(answer.body).replaceAll(from, to);
};

const chats = [
  ...["whole answer", "max_tokens", "max_completion_tokens", "developer role", "content in parts"],
  ...["several turns", "stop", "unknown fields", "tools", "response_format"],
];

const faults: Fault[] = [
  {
    what: "a list of models without object",
    in: "models",
    make: (answer) => delete part(answer)["object"],
    found: ["list"],
    as: /^object: .*"list"/,
  },
  {
    what: "a model that is another",
    in: "model",
    make: (answer) => Object.assign(part(answer), { id: "other" }),
    found: ["retrieve"],
    as: /it is other/,
  },
  {
    what: "a message of the wrong role",
    in: "chat",
    make: (answer) => Object.assign(part(answer, "choices", 0, "message"), { role: "user" }),
    found: chats,
    as: /choices\[0\]\.message\.role/,
  },
  {
    what: "no finish_reason",
    in: "chat",
    make: (answer) => Object.assign(part(answer, "choices", 0), { finish_reason: null }),
    found: chats,
    as: /choices\[0\]\.finish_reason/,
  },
  {
    what: "usage that does not add up",
    in: "chat",
    make: (answer) => Object.assign(part(answer, "usage"), { total_tokens: 3 }),
    found: chats,
    as: /usage: total_tokens is not the sum/,
  },
  {
    what: "more tokens than were asked for",
    in: "chat",
    make: (answer) => Object.assign(part(answer, "usage"), { completion_tokens: 9, total_tokens: 16 }),
    found: ["max_tokens", "max_completion_tokens"],
    as: /9 tokens came, and at most 5 were asked for/,
  },
  {
    what: "a time in milliseconds and text",
    in: "chat",
    make: (answer) => Object.assign(part(answer), { created: "now" }),
    found: chats,
    as: /^created: /,
  },
  {
    what: "no request id",
    in: "chat",
    make: (answer) => delete answer.headers["x-request-id"],
    found: chats,
    as: /x-request-id is missing/,
  },
  {
    what: "a reset of a rate limit as a date",
    in: "chat",
    make: (answer) => Object.assign(answer.headers, { "x-ratelimit-reset-requests": "2026-11-21T10:00:00Z" }),
    found: chats,
    as: /x-ratelimit-reset-requests is no duration/,
  },
  {
    what: "a stream that is told to be JSON",
    in: "stream",
    make: (answer) => Object.assign(answer.headers, { "content-type": "application/json" }),
    found: ["stream"],
    as: /content-type is application\/json instead of text\/event-stream/,
  },
  {
    what: "a stream without [DONE]",
    in: "stream",
    make: (answer) => rewrite(answer, "data: [DONE]\n\n", ""),
    found: ["stream"],
    as: /\[DONE\] is missing/,
  },
  {
    what: "something after [DONE]",
    in: "stream",
    make: (answer) => {
      answer.body += ": over\n\ndata: {}\n\n";
    },
    found: ["stream"],
    as: /something follows data: \[DONE\]/,
  },
  {
    what: "a first chunk without a role",
    in: "stream",
    make: (answer) => rewrite(answer, '"role":"assistant",', ""),
    found: ["stream"],
    as: /no role assistant/,
  },
  {
    what: "a stream that never says why it ends",
    in: "stream",
    make: (answer) => rewrite(answer, '"finish_reason":"stop"', '"finish_reason":null'),
    found: ["stream"],
    as: /0 chunks have a finish_reason/,
  },
  {
    what: "keep-alives that are no comments",
    in: "stream",
    make: (answer) => rewrite(answer, /^/g, "ping\n\n"),
    found: ["stream"],
    as: /neither data nor a comment/,
  },
  {
    what: "an event that is no JSON",
    in: "stream",
    make: (answer) => rewrite(answer, "data: [DONE]", "data: {oops\n\ndata: [DONE]"),
    found: ["stream"],
    as: /an event is no JSON/,
  },
  {
    what: "an error in the middle",
    in: "stream",
    make: (answer) => {
      answer.body = events([{ error: { message: "gone", type: "api_error", code: "upstream_error" } }], "");
    },
    found: ["stream"],
    as: /an error came in the middle/,
  },
  {
    what: "usage that nobody asked for",
    in: "stream",
    make: (answer) =>
      rewrite(answer, "data: [DONE]", `${events([{ choices: [], usage: null }], "").trim()}\n\ndata: [DONE]`),
    found: ["stream"],
    as: /id: /,
  },
  {
    what: "no usage although it was asked for",
    in: "counted stream",
    make: (answer) => rewrite(answer, /data: [^\n]*"choices":\[\][^\n]*\n\n/g, ""),
    found: ["stream with usage"],
    as: /the last chunk before \[DONE\] has no usage/,
  },
  {
    what: "a stream that goes on when its client has left",
    in: "request",
    make: (answer) => Object.assign(part(answer), { outcome: "failed" }),
    found: ["left in the middle"],
    as: /booked as failed, and not as cancelled/,
  },
  {
    what: "numbers where base64 was asked for",
    in: "base64",
    make: (answer) => Object.assign(part(answer, "data", 0), { embedding: [1, 2, 3] }),
    found: ["base64"],
    as: /data\[0\]\.embedding/,
  },
  {
    what: "base64 of 64-bit numbers",
    in: "base64",
    make: (answer) =>
      Object.assign(part(answer, "data", 0), {
        embedding: Buffer.from(Float64Array.of(0.25, -0.5, 0.125).buffer).toString("base64"),
      }),
    found: ["base64"],
    as: /6 numbers in base64, 3 as numbers/,
  },
  {
    what: "other numbers in base64 than without",
    in: "base64",
    make: (answer) => Object.assign(part(answer, "data", 1), { embedding: encodeEmbedding([0.5, 0.75, -0.9]) }),
    found: ["base64"],
    as: /the numbers differ/,
  },
  {
    what: "embeddings out of order",
    in: "float",
    make: (answer) => Object.assign(part(answer, "data", 0), { index: 1 }),
    found: ["float", "without encoding_format"],
    as: /index does not count/,
  },
  {
    what: "an error with a number for its code",
    in: "no messages",
    make: (answer) => Object.assign(part(answer, "error"), { code: 400 }),
    found: ["missing field"],
    as: /error\.code: /,
  },
  {
    what: "an error with more than its three fields",
    in: "no json",
    make: (answer) => Object.assign(part(answer, "error"), { stack: "at x" }),
    found: ["no JSON"],
    as: /"stack"/,
  },
  {
    what: "a refusal that is a page",
    in: "unauthorized",
    make: (answer) => {
      answer.headers["content-type"] = "text/html";
      answer.body = "<h1>Forbidden</h1>";
      answer.status = 403;
    },
    found: ["wrong key", "no key"],
    as: /status 403 instead of 401; content-type is text\/html/,
  },
  {
    what: "a browser's headers that are not allowed",
    in: "preflight",
    make: (answer) => Object.assign(answer.headers, { "access-control-allow-headers": "authorization, content-type" }),
    found: ["browsers"],
    as: /x-stainless-lang is not allowed/,
  },
];

describe("the doctor's client checks name a fault with the request sent", () => {
  test.concurrent.each(faults.map((fault) => [fault.what, fault] as const))("%s", async (_what, fault) => {
    const own = startOpenAiServer();
    try {
      own.change = (kind, answer) => void (kind === fault.in && fault.make(answer));
      const { code, failed, stderr } = await clientTest({ HEADRACE_BASE_URL: own.baseUrl, HEADRACE_API_KEY: own.key });
      expect(failed.map(({ name }) => name)).toEqual([...fault.found]);
      for (const { found, sent, remedy } of failed) {
        expect(found).toMatch(fault.as);
        expect([sent, remedy]).not.toContain("");
      }
      expect(code).toBe(1);
      expect(stderr).toContain(fault.found[0] ?? "");
    } finally {
      await own.stop();
    }
  });
});

test("does not report missing features that a model server declines properly", async () => {
  api.change = (_kind, answer, request) => {
    if (!request["tools"] && !request["response_format"]) return;
    answer.status = 400;
    answer.body = {
      error: { message: "no tools", type: "invalid_request_error", code: "invalid_request" },
    };
  };
  const { code, checks } = await testFake();
  expect(code).toBe(0);
  expect(checks.filter(({ status }) => status === "skipped").map(({ name }) => name)).toEqual([
    "tools",
    "response_format",
  ]);
});

test("reports a refused key, an unknown model or a silent server in one line with a remedy", async () => {
  const wrong = await clientTest({ HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: "sk_live_hr_wrong_canary" });
  expect(wrong.failed).toMatchObject([{ name: "list", found: "the server refuses the key (401)" }]);
  expect(wrong.stdout + wrong.stderr).not.toContain("wrong_canary");

  const unknown = await testFake(["--model", "no-such"]);
  expect(unknown.failed).toMatchObject([{ name: "model", found: "there is no no-such for this key" }]);
  expect(unknown.failed[0]?.remedy).toContain("headrace models");

  const env = { HEADRACE_BASE_URL: "http://127.0.0.1:9/v1", HEADRACE_API_KEY: api.key };
  const gone = await clientTest(env);
  expect(gone.code).toBe(1);
  expect(gone.failed[0]?.remedy).toContain("headrace serve");
});
