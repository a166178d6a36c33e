// Properties of any schedule of faults: every request ends, as its plan allows; each is booked once; nobody else is affected.
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { clientEvents } from "../contract/replay.ts";
import { bookedUsage } from "../support/booked-usage.ts";
import {
  type Fault,
  type FaultPlan,
  type FaultUpstream,
  markOf,
  startFaultUpstream,
  stolen,
  wordsOf,
} from "../support/fault-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { long } from "../support/long.ts";

const runs = long ? 400 : 3;
/** `TEST_SEED` and `TEST_PATH`, as a failure prints them, make the same schedules again. */
const seed = Number(process.env["TEST_SEED"] ?? 20_261_121);
const path = process.env["TEST_PATH"];
/** The server's own limits are a second for the first byte and for silence. */
const endsWithinMs = 15_000;

let upstream: FaultUpstream;
let server: TestServer;
let asked = 0;

beforeAll(async () => {
  upstream = await startFaultUpstream();
  const entry = (name: string) =>
    `  - { name: ${name}, url: "${upstream.url(name)}", timeout_seconds: 1, idle_seconds: 1, max_concurrency: 64 }\n`;
  server = await startHeadrace({ yaml: `upstreams:\n${entry("one")}${entry("two")}` });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const somewhere = fc.integer({ min: 0, max: 1_000 }).map((n) => n / 1_000);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: "none" as const }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("cut" as const),
      at: somewhere,
      how: fc.constantFrom("end" as const, "reset" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("garbage" as const),
      at: somewhere,
      bytes: fc.constantFrom(
        "\0",
        "\r\n",
        "\r\n\r\n",
        "zz\r\n",
        "0\r\n\r\n",
        "data: {\n\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        '"',
        "\xff\xfe",
        "data: [DONE]\n\n",
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("silence" as const), at: somewhere }) },
  { weight: 2, arbitrary: fc.constant({ kind: "early" as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("late" as const), ms: fc.integer({ min: 1, max: 120 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("crumbs" as const), bytes: fc.integer({ min: 1, max: 40 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("length" as const),
      by: fc.integer({ min: -60, max: 60 }).filter((by) => by !== 0),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "tail" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("long" as const),
      bytes: fc.constantFrom(100_000, 1_000_000, ...(long ? [10_000_000] : [])),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("status" as const),
      status: fc.constantFrom(400, 401, 404, 429, 500, 503, 302),
    }),
  },
);

/** What the client does: stays, leaves when the model server has the request, or with the first bytes of the answer. */
type Client = "stays" | "leaves_early" | "leaves_late";

interface Asked {
  plan: FaultPlan;
  client: Client;
}

const request: fc.Arbitrary<Asked> = fc.record({
  plan: fc.record({
    stream: fc.boolean(),
    framing: fc.constantFrom("length", "chunked", "close"),
    words: fc.integer({ min: 1, max: 12 }),
    faults: fc.array(fault, { minLength: 1, maxLength: 2 }),
  }),
  client: fc.oneof(
    { weight: 6, arbitrary: fc.constant("stays" as const) },
    { weight: 1, arbitrary: fc.constant("leaves_early" as const) },
    { weight: 1, arbitrary: fc.constant("leaves_late" as const) },
  ),
});

interface Seen extends Asked {
  id: number;
  status: number;
  text: string;
  /** The client hung up. */
  left: boolean;
}

async function ask({ plan, client }: Asked): Promise<Seen> {
  const id = upstream.add(plan);
  asked++;
  const leaving = new AbortController();
  const deadline = AbortSignal.timeout(endsWithinMs);
  // Longer than what kernels hold, so that an early answer finds the gateway still sending.
  const padding = plan.faults.some(({ kind }) => kind === "early") ? "y".repeat(3_000_000) : "";
  const body = {
    model: "upstream-model",
    messages: [{ role: "user", content: markOf(id) }, ...(padding === "" ? [] : [{ role: "user", content: padding }])],
    stream: plan.stream,
  };
  const seen: Seen = { id, plan, client, status: 0, text: "", left: false };
  if (client === "leaves_early") {
    void until(() => upstream.attempts.some((attempt) => attempt.plan === id), `plan ${id} is asked`).then(
      () => leaving.abort(),
      () => {},
    );
  }
  try {
    const response = await server.request("/v1/chat/completions", {
      body,
      signal: AbortSignal.any([leaving.signal, deadline]),
    });
    seen.status = response.status;
    const decoder = new TextDecoder();
    for await (const piece of response.body ?? []) {
      seen.text += decoder.decode(piece, { stream: true });
      if (client === "leaves_late") leaving.abort();
    }
  } catch (error) {
    if (deadline.aborted) throw new Error(`Plan ${id} did not end: ${JSON.stringify(plan)}`);
    if (!leaving.signal.aborted)
      throw new Error(`Plan ${id}: the gateway broke off: ${JSON.stringify(plan)}`, { cause: error });
    seen.left = true;
  }
  return seen;
}

/** The text of an answer, whether it came to its end, and the error that ended it. */
function read({ plan, text }: Seen): { content: string; done: boolean; error: string | undefined } {
  if (!plan.stream) {
    const answer = JSON.parse(text);
    return {
      content: answer.choices?.[0]?.message.content ?? "",
      done: answer.error === undefined,
      error: answer.error?.code,
    };
  }
  const result = { content: "", done: false, error: undefined as string | undefined };
  for (const { data } of clientEvents(text)) {
    if (data === undefined) continue;
    if (data === "[DONE]") result.done = true;
    else {
      const event = JSON.parse(data);
      if (event.error) result.error = event.error.code;
      else result.content += event.choices?.[0]?.delta?.content ?? "";
    }
  }
  return result;
}

const codes = new Set(["upstream_error", "upstream_timeout", "service_unavailable", "invalid_request"]);

function check(seen: Seen): void {
  const { id, plan, left } = seen;
  const attempts = upstream.attempts.filter((attempt) => attempt.plan === id);
  const about = `plan ${id}: ${JSON.stringify({ attempts, ...seen }).slice(0, 2_000)}`;
  const kinds = attempts.map((_, attempt) => plan.faults[attempt]?.kind ?? "none");
  expect(seen.text, about).not.toContain(stolen);
  // Each upstream is asked once, and once more for each time that it said it has too much to do.
  const busy = plan.faults.filter((one) => one.kind === "status" && (one.status === 429 || one.status === 503)).length;
  expect(attempts.length, about).toBeLessThanOrEqual(2 + busy);
  const upstreams = new Set(attempts.map(({ upstream: name }) => name)).size;
  expect(upstreams, about).toBeGreaterThanOrEqual(attempts.length - busy);
  if (left) return;
  const isStream = plan.stream && seen.status === 200;
  const { content, done, error } =
    isStream || seen.text.startsWith("{")
      ? read({ ...seen, plan: { ...plan, stream: isStream } })
      : { content: "", done: false, error: "unreadable" };
  expect(done === (error === undefined), about).toBe(true);
  if (error !== undefined) {
    expect(codes.has(error), about).toBe(true);
    if (!isStream) expect([400, 502, 503, 504].includes(seen.status), about).toBe(true);
  }
  // It has nothing of anybody else's answer, and is of one attempt only: nothing is tried again once something was delivered.
  const marks = [...content.matchAll(/\[(\d+)\/(\d+)\/(\d+)\]/g)];
  const last = attempts.length - 1;
  for (const [, whose, attempt] of marks) expect([Number(whose), Number(attempt)], about).toEqual([id, last]);
  const garbled = kinds[last] === "garbage";
  if (!garbled) {
    const expected = wordsOf(id, last, plan.words);
    const words = marks.map(([word]) => word);
    expect(words, about).toEqual(expected.slice(0, words.length));
    if (done) expect(words.length, about).toBe(plan.words);
  }
  // What no plan spoils is whole.
  const harmless = kinds[0] === "none" || kinds[0] === "late" || kinds[0] === "crumbs";
  if (harmless) expect([seen.status, done, attempts.length], about).toEqual([200, true, 1]);
}

// hardening: F7
test(
  `ends every request of ${runs} fault schedules as planned, booked once, without disturbing others`,
  async () => {
    const property = fc.asyncProperty(fc.array(request, { minLength: 8, maxLength: 20 }), async (requests) => {
      const all = await Promise.all(requests.map(ask));
      for (const seen of all) check(seen);
      // Whoever comes next finds the model servers usable.
      const plan: FaultPlan = { stream: false, framing: "length", words: 2, faults: [] };
      const after = await Promise.all(
        [plan, { ...plan, stream: true }].map((good) => ask({ plan: good, client: "stays" })),
      );
      for (const seen of after) check(seen);
    });
    await fc.assert(property, { numRuns: runs, seed, endOnFailure: true, ...(path === undefined ? {} : { path }) });

    await until(() => server.logged("request").length >= asked, "all are logged");
    await until(async () => {
      await server.governance.ledger.flush();
      return bookedUsage(server.dataDir).length >= asked;
    }, "all are booked");
    const records = bookedUsage(server.dataDir);
    expect([records.length, new Set(records.map(({ request_id }) => request_id)).size]).toEqual([asked, asked]);
    expect(new Set(records.map(({ outcome }) => outcome)).size).toBe(3);
    // What was delivered before a fault is paid for.
    const lines = new Map(server.logged("request").map((line) => [line["id"], line]));
    for (const record of records) {
      expect([record.request_id, lines.get(record.request_id)?.["completion_tokens"]]).toEqual([
        record.request_id,
        record.completion_tokens,
      ]);
    }
    expect(records.some(({ outcome, completion_tokens }) => outcome === "failed" && completion_tokens > 0)).toBe(true);
    expect(server.logged("connection_failed")).toEqual([]);
    expect(server.logged("request").filter((line) => line["code"] === "internal_error")).toEqual([]);
    for (const { engine } of server.catalog.find("upstream-model")?.deployments ?? []) {
      expect(server.capacity.figures(engine).map(({ inFlight, waiting }) => [inFlight, waiting])).toEqual([[0, 0]]);
    }
  },
  long ? 1_200_000 : 60_000,
);
