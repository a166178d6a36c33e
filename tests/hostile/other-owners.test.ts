// Stored chats, keys and usage of another account or environment: no parameter of any endpoint shows or changes them.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKeyRecord } from "../support/mint-key.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

interface Owner {
  name: string;
  key: string;
  keyId: string;
  chats: string[];
}

let upstream: ScriptedUpstream;
let server: TestServer;
/** The same account in two environments, and another account in one of them. */
let owners: [Owner, Owner, Owner];
const mark = "CANARYOWNER";

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const { accountId } = server.firstKey.record;
  {
    using db = new Database(join(server.dataDir, "headrace.db"));
    db.run("PRAGMA busy_timeout = 5000");
    db.run(
      "INSERT INTO accounts (id, name, tier, created_at) SELECT 'acct_other', 'Other', tier, created_at FROM accounts",
    );
  }
  owners = [
    await ownerOf("first", { accountId, environment: "dev" }),
    await ownerOf("live", { accountId, environment: "live" }),
    await ownerOf("other", { accountId: "acct_other", environment: "dev" }),
  ];
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function ownerOf(name: string, place: { accountId: string; environment: "dev" | "live" }): Promise<Owner> {
  const scopes = ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"] as const;
  const { key, record } = await mintKeyRecord(server.dataDir, { ...place, scopes, name: `${mark}-${name}` });
  const chats: string[] = [];
  for (let i = 0; i < 3; i++) {
    const body = {
      model: "upstream-model",
      messages: [{ role: "user", content: `${mark}-${name}` }],
      store: true,
      metadata: { topic: "same", whose: `${mark}-${name}` },
    };
    const response = await server.request("/v1/chat/completions", {
      body,
      headers: { authorization: `Bearer ${key}` },
    });
    expect(response.status).toBe(200);
    chats.push(((await response.json()) as { id: string }).id);
  }
  return { name, key, keyId: record.id, chats };
}

interface Answer {
  status: number;
  text: string;
}

async function as(owner: Owner, path: string, method = "GET", body?: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${owner.key}` };
  const response = await server.request(path, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: response.status, text: await response.text() };
}

/** Each of them with each of the others. */
function pairs(): [Owner, Owner][] {
  return owners.flatMap((mine) =>
    owners.filter((other) => other !== mine).map((other): [Owner, Owner] => [mine, other]),
  );
}

test("finds an owner's own three chats by every filter, and no others", async () => {
  for (const owner of owners) {
    for (const query of [
      "",
      "?model=upstream-model",
      "?metadata[topic]=same",
      `?metadata[whose]=${mark}-${owner.name}`,
      "?order=desc&limit=100",
      `?metadata[topic]=same&model=upstream-model&order=asc`,
    ]) {
      const { status, text } = await as(owner, `/v1/chat/completions${query}`);
      expect(status).toBe(200);
      const ids = (JSON.parse(text) as { data: { id: string }[] }).data.map(({ id }) => id);
      expect(ids.sort()).toEqual(owner.chats.toSorted());
    }
  }
  for (const [mine, other] of pairs()) {
    const { text } = await as(mine, `/v1/chat/completions?metadata[whose]=${mark}-${other.name}`);
    expect(JSON.parse(text)).toMatchObject({ data: [], has_more: false });
  }
});

test("answers another owner's chat like an unknown id", async () => {
  const never = `chatcmpl-${Bun.randomUUIDv7()}`;
  for (const [mine, other] of pairs()) {
    const [id = ""] = other.chats;
    const same = (answer: Answer, wanted: string) => ({ ...answer, text: answer.text.replaceAll(wanted, "ID") });
    for (const [path, method, body] of [
      ["", "GET", undefined],
      ["/messages", "GET", undefined],
      ["", "POST", { metadata: { topic: "mine now" } }],
      ["", "DELETE", undefined],
    ] as const) {
      const theirs = same(await as(mine, `/v1/chat/completions/${id}${path}`, method, body), id);
      expect([method, path, theirs.status]).toEqual([method, path, 404]);
      expect(theirs).toEqual(same(await as(mine, `/v1/chat/completions/${never}${path}`, method, body), never));
    }
    for (const query of [`after=${id}`, `after=${id}&order=desc`, `after=${id}&metadata[topic]=same`]) {
      const theirs = await as(mine, `/v1/chat/completions?${query}`);
      expect([query, theirs.status]).toEqual([query, 400]);
      expect(theirs).toEqual(await as(mine, `/v1/chat/completions?${query.replace(id, never)}`));
    }
    const [own = ""] = mine.chats;
    const messages = await as(mine, `/v1/chat/completions/${own}/messages?after=${id}-0`);
    expect(messages.status).toBe(400);
  }
  for (const owner of owners) {
    for (const id of owner.chats) {
      const { status, text } = await as(owner, `/v1/chat/completions/${id}`);
      expect(status).toBe(200);
      expect(JSON.parse(text)).toMatchObject({ metadata: { topic: "same", whose: `${mark}-${owner.name}` } });
    }
  }
});

test("ignores fields, parameters and headers that name another owner", async () => {
  for (const [mine, other] of pairs()) {
    for (const name of [
      "account",
      "account_id",
      "accountId",
      "environment",
      "key",
      "key_id",
      "app",
      "app_id",
      "user",
    ]) {
      const { status, text } = await as(mine, `/v1/chat/completions?${name}=${other.keyId}`);
      expect([name, status]).toEqual([name, 400]);
      expect(text).not.toContain(`${mark}-${other.name}`);
    }
    const headers = {
      authorization: `Bearer ${mine.key}`,
      "openai-organization": "acct_other",
      "openai-project": "acct_other",
      "x-account-id": "acct_other",
      "x-environment": "live",
    };
    const listed = await (await server.request("/v1/chat/completions", { headers })).text();
    expect(listed).not.toContain(`${mark}-${other.name}`);
  }
});

test("hides keys and usage of other owners", async () => {
  const never = `key_${Bun.randomUUIDv7()}`;
  await until(async () => (await as(owners[0], "/v1/usage")).text.includes('"requests":3'), "usage is written");
  for (const [mine, other] of pairs()) {
    for (const [path, method, body] of [
      ["", "GET", undefined],
      ["", "PATCH", { name: "mine" }],
      ["", "DELETE", undefined],
      ["/rotate", "POST", {}],
      ["/suspend", "POST", undefined],
      ["/resume", "POST", undefined],
      ["/usage", "GET", undefined],
    ] as const) {
      const theirs = await as(mine, `/v1/keys/${other.keyId}${path}`, method, body);
      expect([method, path, theirs.status]).toEqual([method, path, 404]);
      const none = await as(mine, `/v1/keys/${never}${path}`, method, body);
      expect(theirs.text.replaceAll(other.keyId, "ID")).toBe(none.text.replaceAll(never, "ID"));
    }
    const ended = await as(mine, "/v1/keys/revoke", "POST", { made_by: other.keyId });
    expect(JSON.parse(ended.text)).toMatchObject({ revoked: [], kept: [] });
    const listed = await as(mine, "/v1/keys?limit=100");
    expect(listed.text).not.toContain(`${mark}-${other.name}`);
    // Ids are ordered by time: whose id it is after makes no difference to what is shown.
    expect((await as(mine, `/v1/keys?after=${other.keyId}`)).text).not.toContain(`${mark}-${other.name}`);
    for (const query of ["", "?group_by=key,environment,model", "?bucket=hour&group_by=key"]) {
      const { status, text } = await as(mine, `/v1/usage${query}`);
      expect(status).toBe(200);
      expect(text).not.toContain(other.keyId);
      const rows = (JSON.parse(text) as { data: { requests: number }[] }).data;
      expect(rows.reduce((sum, row) => sum + row.requests, 0)).toBe(3);
    }
    const cursorOf = Buffer.from(JSON.stringify(["day key", 0, other.keyId])).toString("base64url");
    expect((await as(mine, `/v1/usage?group_by=key&cursor=${cursorOf}`)).text).not.toContain(other.keyId);
    const overview = await as(mine, "/v1/account");
    expect(JSON.parse(overview.text)).toMatchObject({ quota: { tokens: { used: 3 * 9 } } });
  }
});

test("hides webhooks from other accounts and environments for reading, changing, testing and deleting", async () => {
  for (const owner of owners) {
    const made = await as(owner, "/v1/webhooks", "POST", { url: "https://hooks.invalid/", description: owner.name });
    const { id } = JSON.parse(made.text);
    for (const other of owners.filter((one) => one !== owner)) {
      for (const [method, path, body] of [
        ["GET", "", undefined],
        ["PATCH", "", { enabled: false }],
        ["DELETE", "", undefined],
        ["POST", "/test", undefined],
        ["POST", "/rotate-secret", {}],
        ["GET", "/deliveries", undefined],
      ] as const) {
        const answer = await as(other, `/v1/webhooks/${id}${path}`, method, body);
        expect([method, path, answer.status]).toEqual([method, path, 404]);
      }
      expect((await as(other, "/v1/webhooks")).text).not.toContain(id);
      expect((await as(other, "/v1/admin/webhooks")).status).toBe(403);
    }
    expect(JSON.parse((await as(owner, `/v1/webhooks/${id}`)).text)).toMatchObject({ id, enabled: true });
  }
});
