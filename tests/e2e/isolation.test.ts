// What model servers get of ids, caches and turns: of each account its own, over replicas and restarts, and nothing else changed.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { startMediaServer } from "../support/media-server.ts";
import { mintKey } from "../support/mint-key.ts";
import { chatScript, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let other: string;
let dataDir: string;

const models = (names: readonly string[]) =>
  names.map((name) => `  - { id: ${name}, deployments: [{ upstream: ${name}, model: ${name} }] }`).join("\n");
const yaml = () => `
upstreams:
  - { name: usual, url: "${upstream.url}", discover: false, apis: [chat, messages] }
  - { name: local, url: "${upstream.url}", discover: false, local: true, apis: [chat, messages] }
  - { name: removed, url: "${upstream.url}", discover: false, identifiers: removed, apis: [chat, messages] }
  - { name: sent, url: "${upstream.url}", discover: false, identifiers: as_sent }
  - { name: vllm, url: "${upstream.url}", discover: false, local: true, cache_salt: true, priority: true, apis: [chat, messages] }
models:
${models(["usual", "local", "removed", "sent", "vllm"])}
`;

beforeAll(async () => {
  upstream = await startUpstream();
  dataDir = mkdtempSync(join(tmpdir(), "headrace-isolation-"));
  server = await startHeadrace({ yaml: yaml(), dataDir });
  other = await keyOfAnotherAccount();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});
beforeEach(() => {
  upstream.script(chatScript());
  upstream.requests.length = 0;
});

/** A key of another account, made by an operator. */
async function keyOfAnotherAccount(): Promise<string> {
  const operator = await mintKey(server.dataDir, { scopes: ["admin:manage"] });
  const headers = { authorization: `Bearer ${operator}` };
  const made = await server.request("/v1/admin/accounts", { body: { name: "Other" }, headers });
  const { id } = (await made.json()) as { id: string };
  const key = { name: "Key", environment: "dev", scopes: ["chat:write"] };
  const answer = await server.request(`/v1/admin/accounts/${id}/keys`, { body: key, headers });
  return ((await answer.json()) as { key: string }).key;
}

async function sentText(text: string, key = server.key, path = "/v1/chat/completions"): Promise<string> {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: text,
  });
  await response.text();
  return upstream.requests.pop()?.text ?? `${response.status}`;
}

const messages = [{ role: "user", content: "Hi" }];
const sent = async (body: object, key?: string, path?: string) =>
  JSON.parse(await sentText(JSON.stringify({ messages, ...body }), key, path)) as Record<string, unknown>;

const reported = { user: "anna", safety_identifier: "anna", prompt_cache_key: "thread-1" };
const pseudonym = expect.stringMatching(/^[\w-]{43}$/);

test("hashes user ids and prompt cache keys per account, with stable results", async () => {
  const first = await sent({ model: "usual", ...reported });
  expect(first).toEqual({
    ...{ model: "usual", messages },
    ...{ user: pseudonym, safety_identifier: pseudonym, prompt_cache_key: pseudonym },
  });
  expect(first["user"]).toBe(first["safety_identifier"]);
  expect(first["user"]).not.toBe(first["prompt_cache_key"]);
  expect(await sent({ model: "usual", ...reported })).toEqual(first);
  const others = await sent({ model: "usual", ...reported }, other);
  for (const name of Object.keys(reported)) expect(others[name]).not.toBe(first[name]);
  await server.reconfigure(yaml());
  expect(await sent({ model: "usual", ...reported })).toEqual(first);
});

test("sends user ids unchanged to local and trusted upstreams, and omits them where configured", async () => {
  const all = { ...reported, metadata: { a: "b" } };
  for (const model of ["local", "sent"]) expect(await sent({ model, ...all })).toEqual({ model, messages, ...all });
  expect(await sent({ model: "removed", ...all })).toEqual({ model: "removed", messages, metadata: { a: "b" } });
});

const promptsOf = {
  "/v1/chat/completions": { messages },
  "/v1/completions": { prompt: "Hi" },
  "/v1/embeddings": { input: "Hi" },
  "/v1/messages": { messages, max_tokens: 9 },
  "/v1/images/generations": { prompt: "Hi" },
  "/v1/rerank": { query: "Hi", documents: ["Ho"] },
};
/** Each as the value of a member that names somebody. */
const odd = ['"anna"', '"\\u0061nna"', "424242", '["anna"]', '{"id":"anna"}', '{"user_id":"anna"}', "null"];

test.each(Object.entries(promptsOf))(
  "hides user names from a vendor in %s, however written and under any other field name",
  async (path, prompt) => {
    const rest = JSON.stringify(prompt).slice(1);
    for (const name of [...Object.keys(reported), "cache_salt"]) {
      const spellings = [name, `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`, name.toUpperCase()];
      for (const spelled of spellings) {
        for (const value of odd) {
          const came = await sentText(`{"model":"usual","${spelled}":${value},${rest}`, undefined, path);
          expect(came).not.toMatch(/anna|\\u0061nna|424242/);
          if (spelled === name && value === "null") expect(came).toContain(`"${name}":null`);
        }
      }
    }
  },
);

test("hashes user ids in metadata of Messages that are numbers or lists", async () => {
  for (const user of [424242, ["anna"], { a: "anna" }]) {
    const text = JSON.stringify({ model: "usual", messages, max_tokens: 9, metadata: { user_id: user, more: 1 } });
    expect(await sentText(text, undefined, "/v1/messages")).not.toMatch(/anna|424242/);
  }
});

test("hashes the user in a multipart form as in JSON, and changes nothing else", async () => {
  await using media = await startMediaServer();
  const upstreams = ["usual", "local", "removed"].map((name) => {
    const how = name === "usual" ? "" : name === "local" ? "local: true, " : "identifiers: removed, ";
    return `  - { name: ${name}, url: "${media.url}", ${how}discover: false }`;
  });
  const names = ["usual", "local", "removed"];
  await using forms = await startHeadrace({
    yaml: `upstreams:\n${upstreams.join("\n")}\nmodels:\n${models(names)}\n`,
    dataDir: mkdtempSync(join(dataDir, "forms-")),
  });
  const received: object[] = [];
  for (const model of names) {
    const form = new FormData();
    for (const [name, value] of [
      ["prompt", "A cat"],
      ["user", "anna"],
      ["model", model],
      ["size", "auto"],
    ] as const)
      form.append(name, value);
    form.append("image", new Blob(["picture"]), "a.png");
    const headers = { authorization: `Bearer ${forms.key}` };
    const response = await fetch(`${forms.url}/v1/images/edits`, { method: "POST", headers, body: form });
    expect(response.status).toBe(200);
    const came = media.requests.pop()?.form ?? new FormData();
    const image = await (came.get("image") as File).text();
    received.push({ ...Object.fromEntries(came), image });
  }
  const same = { prompt: "A cat", size: "auto", image: "picture" };
  expect(received).toEqual([
    { ...same, model: "usual", user: pseudonym },
    { ...same, model: "local", user: "anna" },
    { ...same, model: "removed", user: "" },
  ]);
});

test("hashes the user id in metadata for a Messages server, and keeps the rest of the metadata", async () => {
  const body = { max_tokens: 9, metadata: { user_id: "anna", more: 1 } };
  const path = "/v1/messages";
  const hashed = await sent({ model: "usual", ...body }, undefined, path);
  expect(hashed["metadata"]).toEqual({ user_id: pseudonym, more: 1 });
  expect((await sent({ model: "removed", ...body }, undefined, path))["metadata"]).toEqual({ more: 1 });
  expect(await sent({ model: "local", ...body }, undefined, path)).toEqual({ model: "local", messages, ...body });
  // That has no salt in Messages: it is asked for a chat.
  const salted = await sent({ model: "vllm", ...body }, undefined, path);
  expect(salted).toMatchObject({ model: "vllm", cache_salt: pseudonym, priority: 0 });
});

test("sends a cache salt per account that includes the client's own, and lets no client set the priority", async () => {
  const body = { model: "vllm" };
  const plain = await sent(body);
  expect(plain).toEqual({ model: "vllm", messages, cache_salt: pseudonym, priority: 0 });
  expect(await sent(body)).toEqual(plain);
  const own = await sent({ ...body, cache_salt: "mine", priority: -100 });
  expect(own).toEqual({ model: "vllm", messages, cache_salt: pseudonym, priority: 0 });
  const [ofOther, ownOfOther] = [await sent(body, other), await sent({ ...body, cache_salt: "mine" }, other)];
  const salts = [plain, own, ofOther, ownOfOther].map(({ cache_salt: salt }) => salt);
  expect(new Set(salts).size).toBe(4);
  // Nobody takes the salt of another by naming it.
  expect((await sent({ ...body, cache_salt: salts[0] }, other))["cache_salt"]).not.toBe(salts[0]);
  const elsewhere = await sent({ model: "local", cache_salt: "mine", priority: -100 });
  expect(elsewhere).toEqual({ model: "local", messages, cache_salt: own["cache_salt"] });
});

test("passes on all other bytes of a body unchanged, however they are written", async () => {
  const member = fc.tuple(fc.stringMatching(/^x_[a-z]{1,8}$/), fc.jsonValue({ maxDepth: 2 }));
  const space = fc.constantFrom("", " ", "\n  ");
  const named = fc.subarray(Object.entries({ ...reported, cache_salt: "mine" }));
  const property = fc.asyncProperty(
    fc.uniqueArray(member, { selector: ([name]) => name, maxLength: 5 }),
    named,
    space,
    fc.integer({ min: 0, max: 20 }),
    async (others, ids, gap, turn) => {
      const all: [string, unknown][] = [["messages", messages], ["model", "usual"], ...others, ...ids];
      const turned = [...all.slice(turn % all.length), ...all.slice(0, turn % all.length)];
      const write = (value: (name: string, usual: string) => string) =>
        `{${turned.map(([name, it]) => `${gap}"${name}":${gap}${value(name, JSON.stringify(it))}`).join(`${gap},`)}${gap}}`;
      const came = await sentText(write((_, usual) => usual));
      const body = JSON.parse(came) as Record<string, unknown>;
      for (const [name, value] of ids) expect(body[name]).not.toBe(value);
      const isId = (name: string) => ids.some(([id]) => id === name);
      expect(came).toBe(write((name, usual) => (isId(name) ? JSON.stringify(body[name]) : usual)));
    },
  );
  await fc.assert(property, { numRuns: 150 });
}, 60_000);

test("hashes the same for an account in a second process, also after the secret was replaced", async () => {
  const before = await sent({ model: "vllm", ...reported });
  const secret = (await Bun.file(`${server.dataDir}/secret`).text()).trim().split(/[\s,]/)[0];
  const { key } = server;
  await server[Symbol.asyncDispose]();
  const env = { HEADRACE_SECRET: `${"5a".repeat(32)},${secret}` };
  server = await startHeadrace({ yaml: yaml(), dataDir, env });
  expect(await sent({ model: "vllm", ...reported }, key)).toEqual(before);
});
