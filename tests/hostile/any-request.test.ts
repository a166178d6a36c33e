// Properties of every answer: whatever is asked of an operation of our own OpenAPI document, and by whomever, no input
// makes a 500, each answer is one that the document names, and the next request is served.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mismatches } from "../contract/json-schema.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { mediaAnswer } from "../support/media-server.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { taskAnswers } from "../support/task-answers.ts";
import { goodKinds, openCredentials, unlimited } from "./any-credential.ts";
import { type AnyRequest, anyRequest, oneWrongEach, sentForm } from "./any-request.ts";
import { type Existing, openExisting } from "./existing-things.ts";
import { tellingTexts, tellingValues } from "./hostile-values.ts";
import { type Described, describedBy, type Operation, pageOperations } from "./operations.ts";

// About ten for each operation: with fewer, some operations would not be refused once.
const runs = long ? 30_000 : 2_500;
const pageRuns = long ? 8_000 : 200;
/** `TEST_SEED` and `TEST_PATH`, as a failure prints them, make the same requests again. */
const seed = Number(process.env["TEST_SEED"] ?? 20_261_121);
const path = process.env["TEST_PATH"];

let upstream: ScriptedUpstream;
let server: TestServer;
let credentials: Awaited<ReturnType<typeof openCredentials>>;
let things: Existing;
let described: Described;

beforeAll(async () => {
  upstream = await startUpstream((request, res) => {
    const { path: asked, body } = request;
    if (/^\/v1\/(?:audio|images)\//.test(asked)) {
      return mediaAnswer({ ...request, form: undefined, bytes: 0, digest: "" }, res);
    }
    if (body["stream"] === true || asked.endsWith("/chat/completions")) return chatScript()(request, res);
    const task = taskAnswers[asked];
    if (task) return json(res, 200, task(body));
    const texts = {
      id: "x",
      object: "text_completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, text: "x", finish_reason: "stop" }],
    };
    const inputs = Array.isArray(body["input"]) && typeof body["input"][0] !== "number" ? body["input"] : ["x"];
    const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: [0.5, -1] }));
    return json(
      res,
      200,
      asked.endsWith("/embeddings")
        ? { object: "list", model: "m", data, usage: { prompt_tokens: 1, total_tokens: 1 } }
        : texts,
    );
  });
  // The file has it, so that no upstream that an operator adds or changes takes it away.
  const ours = "models: [{ id: our-model, deployments: [{ upstream: up, model: upstream-model }] }]\n";
  server = await startHeadrace({ yaml: upstreamYaml(upstream, ours), addressLimits: unlimited });
  described = await describedBy(server);
  credentials = await openCredentials(server);
  things = await openExisting(server, upstream.url, credentials);
  await things.refresh();
}, 60_000);

afterAll(async () => {
  await credentials.people.close();
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const errorSchema = { $ref: "#/components/schemas/Error" };

interface Answered {
  response: Response;
  text: string;
}

async function send(request: AnyRequest): Promise<Answered> {
  const { method, target, body, headers } = sentForm(request, (kind) => things.idOf(kind));
  const response = await fetch(server.url + target, {
    method,
    headers: { ...headers, ...credentials.headersOf(request.credential) },
    redirect: "manual",
    ...(body === undefined ? {} : { body }),
  });
  return { response, text: await response.text() };
}

/** What is wrong with the answer; nothing, where all is right. */
function faultsOf({ operation, credential }: AnyRequest, { response, text }: Answered): string[] {
  const { status, headers } = response;
  const faults: string[] = [];
  if (status >= 500) faults.push("a fault of ours");
  if (!/^req_[0-9a-f-]{36}$/.test(headers.get("x-request-id") ?? "")) faults.push("no request id");
  if (/\.ts:\d+|\bat \w+ \(|SQLITE|node_modules|\/src\//.test(text.slice(0, 2_000)) && !response.ok)
    faults.push("tells how it works");
  const secret = Object.values(credentials.headersOf(credential)).join(" ").split(" ").at(-1) ?? "";
  if (!response.ok && secret.length > 20 && text.includes(secret)) faults.push("repeats the credential");
  return [...faults, ...undocumented(operation, response, text)];
}

function undocumented(operation: Operation, response: Response, text: string): string[] {
  // A head that is too long is refused before anybody knows which operation it is for.
  const { status } = response;
  if (status === 414 || status === 431) return mismatches(JSON.parse(text), errorSchema, described.resolve);
  const documented = operation.responses[String(status)];
  if (!documented) return [`status ${status} is not documented`];
  const type = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
  if (Object.keys(documented).length === 0) return [];
  // What is bytes has the type that its server told.
  const media = documented[type] ?? documented["application/octet-stream"];
  if (!media) return [`${type} is not documented for ${status}`];
  if (type !== "application/json" || !media.schema) return [];
  return mismatches(JSON.parse(text), media.schema, described.resolve);
}

/** The database, the route table and the authentication still do what they did. */
async function stillServes(): Promise<void> {
  const response = await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${server.key}` } });
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("our-model");
}

/** Fails with seed, path and the request, made as small as still fails. */
async function holds(
  requests: fc.Arbitrary<AnyRequest>,
  numRuns: number,
  check: (request: AnyRequest) => Promise<void>,
) {
  let count = 0;
  const property = fc.asyncProperty(requests, async (request) => {
    // Requests revoke, suspend and delete what others are about.
    if (++count % 250 === 0) await things.refresh();
    await check(request);
  });
  await fc.assert(property, {
    ...{ seed, numRuns, ...(path === undefined ? {} : { path }) },
    interruptAfterTimeLimit: 900_000,
    reporter(details) {
      if (!details.failed) return;
      const [request] = details.counterexample ?? [];
      const shown =
        request && JSON.stringify({ ...request, operation: `${request.operation.method} ${request.operation.path}` });
      throw new Error(
        `TEST_SEED=${details.seed} TEST_PATH=${details.counterexamplePath}\n${String(shown).slice(0, 3_000)}\n${String(details.errorInstance)}`,
      );
    },
  });
}

describe("generated requests to every route", () => {
  // hardening: K11
  test(`answers ${runs} generated requests to all operations as documented, never with 500`, async () => {
    const { operations, resolve } = described;
    expect(operations.length).toBeGreaterThan(100);
    const done = new Map<string, number>();
    const refused = new Map<string, number>();
    const statuses = new Map<number, number>();
    await holds(anyRequest(operations, resolve), runs, async (request) => {
      const startedMs = performance.now();
      const answered = await send(request);
      if (performance.now() - startedMs > 5_000) throw new Error("no answer within 5 s");
      const { status, ok } = answered.response;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const counts = ok ? done : refused;
      const name = `${request.operation.method} ${request.operation.path}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      const faults = faultsOf(request, answered);
      if (faults.length > 0)
        throw new Error(`${status} ${answered.text.slice(0, 500)}\n${faults.slice(0, 5).join("\n")}`);
      await stillServes();
      // What is good must be good again for others: some requests end the credential with which they come.
      if (status === 401 && goodKinds.includes(request.credential)) await credentials.renew(request.credential);
    });
    console.log(
      `seed ${seed}: ${[...statuses]
        .sort()
        .map(([status, count]) => `${status} x ${count}`)
        .join(", ")}`,
    );
    expect(server.logged("request").filter((line) => line["code"] === "internal_error")).toEqual([]);
    if (path !== undefined) return;
    // Neither all good nor all bad: nearly every operation did what it is for, and refused.
    expect(done.size).toBeGreaterThan(operations.length * 0.7);
    expect(refused.size).toBeGreaterThan(operations.length * 0.8);
  }, 1_200_000);

  // hardening: K9, K11
  test("answers each wrong parameter and body field as documented, never with 500", async () => {
    // All of the odd values in the long form; here every so many of them, others with another seed.
    const some = <Item>(items: readonly Item[], every: number) =>
      items.filter((_, index) => long || (index + seed) % every === 0);
    const odd = { texts: some(tellingTexts, 12), values: some(tellingValues, 7) };
    const wrong: string[] = [];
    let count = 0;
    for (const operation of described.operations) {
      for (const request of oneWrongEach(operation, described.resolve, odd)) {
        if (++count % 250 === 0) await things.refresh();
        const answered = await send(request);
        const faults = faultsOf(request, answered);
        const where = `${operation.method} ${operation.path} ${JSON.stringify([request.query, request.segments, request.body])}`;
        if (faults.length > 0) wrong.push(`${where.slice(0, 500)}: ${faults[0]} ${answered.text.slice(0, 300)}`);
        if (answered.response.status === 401) await credentials.renew(request.credential);
      }
    }
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(1_000);
    await stillServes();
  }, 600_000);

  // hardening: K11
  test(`answers ${pageRuns} generated requests to pages with a page or a redirect to one, never with 500`, async () => {
    const pages = pageOperations();
    expect(pages.length).toBeGreaterThan(30);
    await holds(anyRequest(pages, described.resolve), pageRuns, async (request) => {
      const { response, text } = await send(request);
      const problem = `${response.status} ${text.slice(0, 300)}`;
      expect([problem, response.status >= 500]).toEqual([problem, false]);
      expect(response.headers.get("x-request-id")).toMatch(/^req_/);
      if (response.status === 303) expect(response.headers.get("location")).toMatch(/^\/|^https:\/\/notes\.example\//);
      await stillServes();
    });
    expect(server.logged("request").filter((line) => line["code"] === "internal_error")).toEqual([]);
  }, 1_200_000);
});
