// What is kept of responses and conversations is readable in no file, and in none at all once it is deleted or was not to be kept.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { filesIn } from "./data-files.ts";

const model = "upstream-model";
const marks = ["CANARYINPUT", "CANARYANSWER", "CANARYLABEL", "CANARYITEM"] as const;
const [inputMark, answerMark, labelMark, itemMark] = marks;
let directory: string;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-erased-"));
  upstream = await startUpstream(chatScript(Array(300).fill(`${answerMark} `)));
  server = await startHeadrace({ yaml: upstreamYaml(upstream), dataDir: join(directory, "data") });
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** Files, the log among them, that hold one of the texts. */
function holders(texts: readonly string[]): string[] {
  const named = filesIn(server.dataDir).map((file) => [file, readFileSync(file, "latin1")] as const);
  return [...named, ["the log", server.logText()] as const]
    .filter(([, bytes]) => texts.some((text) => bytes.includes(text)))
    .map(([name]) => name);
}

/** Pieces of what is sealed in the database now: what of it is left in a file can still be opened. */
function sealedNow(): string[] {
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  try {
    const columns = [
      ["stored_responses", "input"],
      ["stored_responses", "response"],
      ["conversations", "metadata"],
      ["conversation_items", "content"],
    ] as const;
    return columns.flatMap(([table, column]) =>
      db
        .query<{ sealed: string }, []>(`SELECT ${column} AS sealed FROM ${table} WHERE ${column} <> ''`)
        .all()
        // A longer piece may lie over two pages.
        .map(({ sealed }) => sealed.slice(8, 40)),
    );
  } finally {
    db.close();
  }
}

async function ask(path: string, body?: object, method?: string): Promise<Record<string, unknown>> {
  const answer = await server.request(path, { ...(body ? { body } : {}), ...(method ? { method } : {}) });
  expect(answer.status).toBe(200);
  const text = await answer.text();
  if (!text.startsWith("event:")) return JSON.parse(text) as Record<string, unknown>;
  return { id: /resp_[\w-]+/.exec(text)?.[0] };
}

const input = `${inputMark} `.repeat(300);
const said = { role: "user", content: `${itemMark} `.repeat(300) };

async function keep() {
  const conversation = await ask("/v1/conversations", { metadata: { topic: labelMark }, items: [said] });
  const asked = { model, input, conversation: conversation["id"] };
  const whole = await ask("/v1/responses", asked);
  const streamed = await ask("/v1/responses", { ...asked, stream: true });
  const added = await ask(`/v1/conversations/${conversation["id"]}/items`, { items: [said, said] });
  return { conversation: conversation["id"], responses: [whole["id"], streamed["id"]], item: added["first_id"] };
}

test("writes stored responses and conversations readably to no file or log line", async () => {
  await keep();
  expect(sealedNow()).toHaveLength(2 * 2 + 1 + 1 + 2 * 2 + 2);
  expect(holders(marks)).toEqual([]);
  expect(holders(sealedNow())).not.toEqual([]);
});

test("removes deleted responses and conversations from all files within seconds, even sealed copies", async () => {
  const { conversation, responses, item } = await keep();
  const sealed = sealedNow();
  await ask(`/v1/conversations/${conversation}`, { metadata: {} });
  await ask(`/v1/conversations/${conversation}/items/${item}`, undefined, "DELETE");
  for (const id of responses) await ask(`/v1/responses/${id}`, undefined, "DELETE");
  await ask(`/v1/conversations/${conversation}`, undefined, "DELETE");
  expect(sealedNow()).toEqual([]);
  await until(() => holders(sealed).length === 0, "what was deleted is in no file", 3_000);
});

test("removes replaced metadata and deleted items from all files within seconds while their conversation continues", async () => {
  const { conversation, item } = await keep();
  for (const change of [
    () => ask(`/v1/conversations/${conversation}`, { metadata: {} }),
    () => ask(`/v1/conversations/${conversation}/items/${item}`, undefined, "DELETE"),
  ]) {
    const before = sealedNow();
    await change();
    const left = new Set(sealedNow());
    const gone = before.filter((sealed) => !left.has(sealed));
    expect(gone).toHaveLength(1);
    await until(() => holders(gone).length === 0, "what is gone is in no file", 3_000);
  }
});

test("leaves nothing of a request with `store: false` on any path", async () => {
  const asked = { model, input, store: false };
  await ask("/v1/responses", asked);
  await ask("/v1/responses", { ...asked, stream: true });
  await ask("/v1/responses/input_tokens", asked);
  await ask("/v1/responses/compact", { model, input });
  const refused = await server.request("/v1/responses", { body: { ...asked, previous_response_id: inputMark } });
  expect(refused.status).toBe(400);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${server.key}` },
  } as never);
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  for (const more of [{}, { generate: false }]) {
    const done = new Promise((resolve) => {
      socket.onmessage = ({ data }) => String(data).includes('"response.completed"') && resolve(undefined);
    });
    socket.send(JSON.stringify({ type: "response.create", ...asked, ...more }));
    await done;
  }
  socket.close();
  expect(sealedNow()).toEqual([]);
  expect(holders(marks)).toEqual([]);
  await server.close();
  expect(holders(marks)).toEqual([]);
});
