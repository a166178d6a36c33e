// What outlives its request when its key ends or the server stops: what goes on, what ends, and what a key may have at once.
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type GatedUpstream, startGatedUpstream } from "../support/gated-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { upstreamYaml } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

const model = "upstream-model";
let upstream: GatedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startGatedUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream, "limits: { open_requests_per_key: 2 }\n") });
});
afterEach(async () => {
  upstream.finish();
  await until(() => upstream.open() === 0, "nothing is open");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function newKey(): Promise<{ id: string; key: string }> {
  const made = await server.request("/v1/keys", { body: { name: "ends", scopes: ["chat:read", "chat:write"] } });
  return (await made.json()) as { id: string; key: string };
}

const revoke = (id: string) => server.request(`/v1/keys/${id}`, { method: "DELETE" });

const as = (key: string, path: string, body?: Json, at = server) =>
  at.request(path, { headers: { authorization: `Bearer ${key}` }, ...(body ? { body } : {}) });

/** Asks for a response in the background, and resolves with its id once its model is asked. */
async function inBackground(key: string, more: Json = {}, at = server): Promise<string> {
  const before = upstream.open();
  const made = await as(key, "/v1/responses", { model, input: "Hi", background: true, ...more }, at);
  expect(made.status).toBe(200);
  const { id } = (await made.json()) as { id: string };
  await until(() => upstream.open() > before, "the model is asked");
  return id;
}

/** The status of a stored response, by its row: its key is refused by now. */
function stored(id: string): string {
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const row = db.query("SELECT status FROM stored_responses WHERE id = ?").get(id) as { status: string };
  return row.status;
}

// long-lived: request.credential
test("finishes a running stream after its key is revoked, and refuses the next request", async () => {
  const { id, key } = await newKey();
  const asked = { model, stream: true, messages: [{ role: "user", content: "Hi" }] };
  const answered = await as(key, "/v1/chat/completions", asked);
  upstream.say("before");
  await revoke(id);
  await Bun.sleep(1_500);
  upstream.say("after");
  upstream.finish();
  const text = await answered.text();
  expect(text).toContain("before");
  expect(text).toContain("after");
  expect(text).toEndWith("data: [DONE]\n\n");
  expect((await as(key, "/v1/chat/completions", asked)).status).toBe(401);
});

// long-lived: backgroundResponse.credential
test("finishes a background response after its key is revoked", async () => {
  const { id, key } = await newKey();
  const response = await inBackground(key);
  await revoke(id);
  await Bun.sleep(1_500);
  expect(upstream.open()).toBe(1);
  upstream.say("Done");
  upstream.finish();
  await until(() => stored(response) === "completed", "it is completed");
  expect((await as(key, `/v1/responses/${response}`)).status).toBe(401);
});

// long-lived: backgroundResponse.key
test("counts background responses as open requests of their key until they end", async () => {
  const { key } = await newKey();
  await inBackground(key);
  await inBackground(key);
  const third = await as(key, "/v1/responses", { model, input: "Hi", background: true });
  expect(third.status).toBe(429);
  expect(await third.text()).toContain("open");
  const { key: another } = await newKey();
  await inBackground(another);
  upstream.finish();
  await until(() => upstream.open() === 0, "they end");
  const again = await until(async () => {
    const made = await as(key, "/v1/responses", { model, input: "Hi", background: true });
    return made.status === 200 ? made : undefined;
  }, "there is room again");
  expect(again.status).toBe(200);
});

// long-lived: responseFollower.server
test("ends a stream of background events when the server stops", async () => {
  const stopping = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const response = await inBackground(stopping.key, {}, stopping);
  const followed = await as(stopping.key, `/v1/responses/${response}?stream=true`, undefined, stopping);
  expect(followed.status).toBe(200);
  const text = followed.text().catch((error: Error) => error.message);
  await stopping.close(300);
  expect(await text).not.toContain("response.completed");
  await stopping[Symbol.asyncDispose]();
});

// long-lived: upload.age
test("refuses parts an hour after an upload began", async () => {
  const begun = await server.request("/v1/uploads", {
    body: { filename: "a", purpose: "batch", mime_type: "text/plain", bytes: 1 },
  });
  const { id, created_at, expires_at } = (await begun.json()) as { id: string; created_at: number; expires_at: number };
  expect(expires_at - created_at).toBe(3_600);
  using db = new Database(join(server.dataDir, "headrace.db"));
  db.run("UPDATE uploads SET expires_at = created_at WHERE id = ?", [id]);
  expect(await partOf(server.key, id)).toBe(400);
});

// long-lived: upload.credential
test("refuses further upload parts once the key is revoked", async () => {
  const { id: keyId, key } = await newKey();
  const begun = await as(key, "/v1/uploads", { filename: "a", purpose: "batch", mime_type: "text/plain", bytes: 2 });
  const { id } = (await begun.json()) as { id: string };
  expect(await partOf(key, id)).toBe(200);
  await revoke(keyId);
  expect(await partOf(key, id)).toBe(401);
});

async function partOf(key: string, upload: string): Promise<number> {
  const form = new FormData();
  form.set("data", new Blob(["x"]), "part");
  const headers = { authorization: `Bearer ${key}` };
  const answered = await fetch(`${server.url}/v1/uploads/${upload}/parts`, { method: "POST", headers, body: form });
  await answered.text();
  return answered.status;
}
