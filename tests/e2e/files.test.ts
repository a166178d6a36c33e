// Files: uploaded as they come and in parts, listed, read and deleted, by OpenAI's SDK and by hand; on a disk and in an object store.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, truncateSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { toFile } from "openai";
import { S3Objects } from "../../src/storage/objects/s3-objects.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ObjectServer, startObjectServer } from "../support/object-server.ts";
import { canMount, smallDisk } from "../support/small-disk.ts";

const yaml = "files: { max_bytes: 8388608, account_bytes: 20971520 }\n";
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  server = await startHeadrace({ yaml });
  client = openaiClient(server);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** Files below the directory of files; none of them half written. */
function onDisk(dataDir = server.dataDir): string[] {
  return readdirSync(join(dataDir, "files"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

/** What the SDK says of an error; its promises are none for `rejects`. */
async function refusal(asked: PromiseLike<unknown>): Promise<string> {
  try {
    await asked;
    return "no error";
  } catch (error) {
    return String(error);
  }
}

function form(parts: readonly string[], boundary = "b"): { body: string; headers: Record<string, string> } {
  const body = `${parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("")}--${boundary}--\r\n`;
  return { body, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } };
}

const filePart = (text: string) => `Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n${text}`;
const field = (name: string, value: string) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;

describe("files with OpenAI's SDK", () => {
  test("uploads, retrieves, lists, reads and deletes files", async () => {
    const content = Buffer.from(`{"a":"\u00fc"}\r\n--b\r\n`);
    const made = await client.files.create({
      file: await toFile(content, "requests.jsonl"),
      purpose: "batch",
      expires_after: { anchor: "created_at", seconds: 3_600 },
    });
    expect(made).toMatchObject({ object: "file", bytes: content.length, filename: "requests.jsonl", purpose: "batch" });
    expect(made.expires_at).toBe(made.created_at + 3_600);
    const other = await client.files.create({ file: await toFile(Buffer.from("x"), "b.txt"), purpose: "user_data" });
    expect(await client.files.retrieve(made.id)).toEqual(made);
    expect(Buffer.from(await (await client.files.content(made.id)).arrayBuffer())).toEqual(content);
    const listed = await Array.fromAsync(client.files.list({ limit: 1 }));
    expect(listed.map(({ id }) => id).toSorted()).toEqual([made.id, other.id].toSorted());
    expect((await client.files.list({ purpose: "batch" })).data).toEqual([made]);
    for (const id of [made.id, other.id]) {
      expect(await client.files.delete(id)).toEqual({ id, object: "file", deleted: true });
    }
    expect(await refusal(client.files.content(made.id))).toMatch(/There is no file/);
    await server.sweepFiles();
    expect(onDisk()).toEqual([]);
  });

  test("uploads a file in parts, in the order given at completion", async () => {
    const [one, two] = [Buffer.alloc(300_000, "1"), Buffer.alloc(200_000, "2")];
    const md5 = createHash("md5").update(one).update(two).digest("hex");
    const upload = await client.uploads.create({
      ...{ filename: "long.jsonl", purpose: "batch", mime_type: "application/jsonl" },
      bytes: 500_000,
    });
    expect(upload).toMatchObject({ object: "upload", status: "pending", bytes: 500_000 });
    expect(upload.expires_at).toBe(upload.created_at + 3_600);
    const parts = await Promise.all(
      [two, one].map(async (data) => client.uploads.parts.create(upload.id, { data: await toFile(data, "part") })),
    );
    const ids = parts.map(({ id }) => id).toReversed();
    expect(await refusal(client.uploads.complete(upload.id, { part_ids: ids.slice(1) }))).toMatch(/500000 bytes/);
    expect(await refusal(client.uploads.complete(upload.id, { part_ids: ids, md5: "00" }))).toMatch(/md5/);
    const done = await client.uploads.complete(upload.id, { part_ids: ids, md5 });
    expect(done).toMatchObject({ status: "completed", file: { bytes: 500_000, filename: "long.jsonl" } });
    const read = Buffer.from(await (await client.files.content(done.file?.id ?? "")).arrayBuffer());
    expect(read.equals(Buffer.concat([one, two]))).toBe(true);
    expect(await refusal(client.uploads.complete(upload.id, { part_ids: ids }))).toMatch(/completed, cancelled/);
    await client.files.delete(done.file?.id ?? "");
  });

  test("cancels an upload, which accepts no further part", async () => {
    const upload = await client.uploads.create({
      ...{ filename: "a", purpose: "batch", mime_type: "text/plain" },
      bytes: 10,
    });
    expect((await client.uploads.cancel(upload.id)).status).toBe("cancelled");
    const data = await toFile(Buffer.from("x"), "part");
    expect(await refusal(client.uploads.parts.create(upload.id, { data }))).toMatch(/cancelled/);
  });
});

test("refuses an upload by Anthropic's SDK, says what to send, and stores nothing", async () => {
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
  const upload = anthropic.beta.files.upload({ file: await toFile(Buffer.from("x"), "a.txt") });
  expect(await refusal(upload)).toMatch(/400.*Files API is not served here. Send the file in the message/);
  await server.sweepFiles();
  expect(onDisk()).toEqual([]);
});

describe("multipart forms of file uploads", () => {
  test("accepts a form with the file before all other fields", async () => {
    const { body, headers } = form([filePart("{}\n"), field("purpose", "batch")]);
    const made = await server.request("/v1/files", { method: "POST", body, headers });
    expect([made.status, await made.json()]).toMatchObject([200, { bytes: 3, purpose: "batch" }]);
  });

  test.each([
    ["fields in brackets", [field("expires_after[anchor]", "created_at"), field("expires_after[seconds]", "3600")]],
    ["fields with dots", [field("expires_after.anchor", "created_at"), field("expires_after.seconds", "3600")]],
    ["a JSON object", [field("expires_after", '{"anchor":"created_at","seconds":3600}')]],
  ])("deletes a file when its form says so in %s", async (_, expiry) => {
    const { body, headers } = form([filePart("{}\n"), field("purpose", "batch"), ...expiry]);
    const made = await server.request("/v1/files", { method: "POST", body, headers });
    const { created_at, expires_at } = (await made.json()) as { created_at: number; expires_at: number };
    expect(expires_at - created_at).toBe(3_600);
  });

  const wrong: readonly [string, ReturnType<typeof form>, number, RegExp][] = [
    [
      "with an expiry that is no object",
      form([filePart("x"), field("purpose", "batch"), field("expires_after", "1h")]),
      400,
      /expires_after: must be an object/,
    ],
    [
      "with an expiry of half an hour in JSON",
      form([
        filePart("x"),
        field("purpose", "batch"),
        field("expires_after", '{"anchor":"created_at","seconds":1800}'),
      ]),
      400,
      /expires_after\.seconds/,
    ],
    ["without a purpose", form([filePart("x")]), 400, /purpose/],
    ["with a purpose that is none", form([filePart("x"), field("purpose", "fun")]), 400, /purpose/],
    ["without a file", form([field("purpose", "batch")]), 400, /file: is required/],
    ["with two files", form([filePart("x"), filePart("y"), field("purpose", "batch")]), 400, /comes twice/],
    [
      "that expires too late",
      form([
        filePart("x"),
        field("purpose", "batch"),
        field("expires_after[anchor]", "created_at"),
        field("expires_after[seconds]", "99999999"),
      ]),
      400,
      /expires_after\[seconds\]/,
    ],
    [
      "with another boundary than it says",
      { ...form([filePart("x")]), headers: { "content-type": "multipart/form-data; boundary=other" } },
      400,
      /boundary/,
    ],
    ["that is JSON", { body: "{}", headers: { "content-type": "application/json" } }, 415, /multipart/],
    [
      "with a file that is too long",
      form([filePart("x".repeat(8_388_609)), field("purpose", "batch")]),
      413,
      /max_bytes/,
    ],
  ];
  test.each(wrong)("refuses an upload form %s and stores nothing", async (_, { body, headers }, status, message) => {
    const before = onDisk();
    const refused = await server.request("/v1/files", { method: "POST", body, headers });
    expect(refused.status).toBe(status);
    expect(((await refused.json()) as { error: { message: string } }).error.message).toMatch(message);
    expect(onDisk()).toEqual(before);
  });

  test("stores nothing of a form that is cut at any position", async () => {
    const before = onDisk();
    const { body } = form([filePart("x".repeat(100_000)), field("purpose", "batch")]);
    for (const share of [0.001, 0.01, 0.5, 0.999]) {
      const head = [
        ...["POST /v1/files HTTP/1.1", "host: x", `authorization: Bearer ${server.key}`],
        ...["content-type: multipart/form-data; boundary=b", `content-length: ${body.length}`, "", ""],
      ].join("\r\n");
      const socket = connect(server.port, "127.0.0.1");
      await new Promise((resolve) => socket.once("connect", resolve));
      socket.write(head + body.slice(0, Math.floor(share * body.length)));
      await Bun.sleep(50);
      socket.destroy();
    }
    await until(() => onDisk().length === before.length, "what was cut is gone");
  });

  test("reads a chunked form like any other", async () => {
    const { body, headers } = form([filePart("x".repeat(200_000)), field("purpose", "batch")]);
    async function* pieces() {
      for (let at = 0; at < body.length; at += 7_001) yield Buffer.from(body.slice(at, at + 7_001));
    }
    const made = await fetch(`${server.url}/v1/files`, {
      method: "POST",
      headers: { ...headers, authorization: `Bearer ${server.key}` },
      body: pieces() as unknown as ReadableStream,
    });
    expect([made.status, await made.json()]).toMatchObject([200, { bytes: 200_000 }]);
  });
});

test("bounds the total size of an account's files", async () => {
  const file = () => form([filePart("x".repeat(8_000_000)), field("purpose", "batch")]);
  const made: string[] = [];
  let refused: Response | undefined;
  for (let n = 0; n < 4 && !refused; n++) {
    const response = await server.request("/v1/files", { method: "POST", ...file() });
    if (response.status === 200) made.push(((await response.json()) as { id: string }).id);
    else refused = response;
  }
  expect(refused?.status).toBe(413);
  expect(await refused?.text()).toContain("account_bytes");
  for (const id of made) await client.files.delete(id);
});

test("does not count a file that could not be created against the account's storage", async () => {
  await using own = await startHeadrace({ yaml });
  const incoming = join(own.dataDir, "files", "incoming");
  rmSync(incoming, { recursive: true });
  const sent = form([filePart("x".repeat(8_000_000)), field("purpose", "batch")]);
  const create = () => own.request("/v1/files", { method: "POST", ...sent });
  for (let n = 0; n < 3; n++) expect((await create()).ok).toBe(false);
  mkdirSync(incoming);
  expect((await create()).status).toBe(200);
});

// long-lived: upload.account
test("counts running uploads against the account's storage until they are cancelled", async () => {
  const create = () =>
    client.uploads.create({ filename: "a", purpose: "batch", mime_type: "text/plain", bytes: 8_000_000 });
  const made: string[] = [];
  for (let n = 0; n < 2; n++) made.push((await create()).id);
  expect(await refusal(create())).toMatch(/413 .*account_bytes/);
  await client.uploads.cancel(made.pop() ?? "");
  made.push((await create()).id);
  for (const id of made) await client.uploads.cancel(id);
});

test("stores a file whole or not at all if the database fails at its end", async () => {
  await using own = await startHeadrace({ yaml });
  const of = openaiClient(own);
  const content = Buffer.from("content");
  const upload = await of.uploads.create({
    ...{ filename: "a", purpose: "batch", mime_type: "text/plain", bytes: content.length },
  });
  const { id } = await of.uploads.parts.create(upload.id, { data: await toFile(content, "part") });
  const { Database } = await import("bun:sqlite");
  using db = new Database(join(own.dataDir, "headrace.db"));
  const refused = ["UPDATE OF status ON uploads", "DELETE ON stored_files", "UPDATE OF state ON stored_files"];
  for (const [n, what] of refused.entries()) {
    const when = what.includes("state ON") ? "WHEN NEW.state = 'gone'" : "";
    db.run(`CREATE TRIGGER t${n} BEFORE ${what} ${when} BEGIN SELECT RAISE(ABORT, 'refused'); END`);
  }
  expect(await refusal(of.uploads.complete(upload.id, { part_ids: [id] }))).toMatch(/50[03]/);
  for (const found of (await of.files.list()).data) {
    expect(await (await of.files.content(found.id)).text()).toBe("content");
  }
  for (const n of refused.keys()) db.run(`DROP TRIGGER t${n}`);
  expect((await of.uploads.complete(upload.id, { part_ids: [id] })).status).toBe("completed");
});

test("hides files from everyone but their owner", async () => {
  const made = await client.files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" });
  const key = async (scopes: string[]) => {
    const response = await server.request("/v1/keys", { body: { name: "other", scopes } });
    return ((await response.json()) as { key: string }).key;
  };
  // What a key made is for those that the same key made: another one's keys see none of it.
  const child = openaiClient({ url: server.url, key: await key(["chat:read", "chat:write"]) });
  expect(await refusal(child.files.retrieve(made.id))).toMatch(/There is no file/);
  const reader = openaiClient({ url: server.url, key: await key(["chat:read"]) });
  expect(await refusal(reader.files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" }))).toMatch(
    /chat:write/,
  );
});

test("fails the download of a file that is truncated on the disk", async () => {
  const content = Buffer.alloc(200_000, "x");
  const { id } = await client.files.create({ file: await toFile(content, "a"), purpose: "user_data" });
  const path = join(server.dataDir, "files", id.slice(-2), id);
  truncateSync(path, 150_000);
  const read = async () => (await server.request(`/v1/files/${id}/content`)).arrayBuffer();
  await expect(read()).rejects.toThrow();
  truncateSync(path, 0);
  expect((await server.request(`/v1/files/${id}/content`)).status).toBe(503);
  await client.files.delete(id);
  await server.sweepFiles();
});

describe("the files directory while its disk is not mounted", () => {
  test("reports a server error for uploads and reads while the files' disk is not mounted, and completes deletions later", async () => {
    await using own = await startHeadrace({ yaml });
    const files = openaiClient(own).files;
    const make = async () => await files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" });
    const [kept, deleted] = [await make(), await make()];
    const directory = join(own.dataDir, "files");
    renameSync(directory, `${directory}.away`);
    expect(await refusal(make())).toMatch(/503 .*cannot be read or written/);
    expect((await own.request(`/v1/files/${kept.id}/content`)).status).toBe(503);
    await files.delete(deleted.id);
    await own.sweepFiles();
    expect(own.logged("file_retention_failed")).toHaveLength(1);
    renameSync(`${directory}.away`, directory);
    expect((await own.request(`/v1/files/${kept.id}/content`)).status).toBe(200);
    await own.sweepFiles();
    expect(onDisk(own.dataDir)).toEqual([kept.id]);
  });

  test("does not recreate the files directory at start if the database lists files in it", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "headrace-files-"));
    const directory = join(dataDir, "mounted");
    const yamlOf = `files: { directory: ${directory} }\n`;
    try {
      const made = async (to: OpenAI) => {
        return await to.files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" });
      };
      let [id, key] = ["", ""];
      {
        await using first = await startHeadrace({ yaml: yamlOf, dataDir });
        ({ key } = first);
        ({ id } = await made(openaiClient(first)));
      }
      renameSync(directory, `${directory}.away`);
      mkdirSync(directory);
      await using second = await startHeadrace({ yaml: yamlOf, dataDir });
      expect(second.logged("files_directory_empty")).toHaveLength(1);
      const again = openaiClient({ url: second.url, key });
      expect(await refusal(made(again))).toMatch(/503/);
      expect(readdirSync(directory)).toEqual([]);
      rmSync(directory, { recursive: true });
      renameSync(`${directory}.away`, directory);
      expect(await (await again.files.content(id)).text()).toBe("x");
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });
});

test("hides an expired file, and deletes its bytes", async () => {
  await using own = await startHeadrace();
  const files = openaiClient(own).files;
  const made = await files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" });
  expect(onDisk(own.dataDir)).toEqual([made.id]);
  const { Database } = await import("bun:sqlite");
  const db = new Database(join(own.dataDir, "headrace.db"));
  db.run("UPDATE stored_files SET expires_at = created_at");
  db.close();
  expect(await refusal(files.retrieve(made.id))).toMatch(/There is no file/);
  await own.sweepFiles();
  expect(onDisk(own.dataDir)).toEqual([]);
});

describe("an object store", () => {
  let store: ObjectServer;
  let own: TestServer;
  beforeAll(async () => {
    store = startObjectServer();
    own = await startHeadrace({
      yaml: `files: { s3: { endpoint: "${store.url}", bucket: files, access_key_id: a, secret_access_key: b, prefix: h/ } }\n`,
    });
  });
  afterAll(async () => {
    await own[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });

  test("stores files of several parts in an object store, and deletes them there", async () => {
    const { files } = openaiClient(own);
    const content = Buffer.alloc(12_000_000, "abc");
    const made = await files.create({ file: await toFile(content, "a"), purpose: "batch" });
    expect([...store.objects.keys()]).toEqual([`files/h/${made.id}`]);
    expect(Buffer.from(await (await files.content(made.id)).arrayBuffer()).equals(content)).toBe(true);
    await files.delete(made.id);
    await own.sweepFiles();
    expect([...store.objects.keys()]).toEqual([]);
  });

  test("reports a server error, not a client error, while the object store is away", async () => {
    const { files } = openaiClient(own);
    store.isAway = true;
    const creating = files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" }, { maxRetries: 0 });
    expect(await refusal(creating)).toMatch(/503/);
    store.isAway = false;
    expect((await files.list()).data).toEqual([]);
  });

  test.each([
    [403, "AccessDenied"],
    [507, "InsufficientStorage"],
    [503, "SlowDown"],
    [400, "QuotaExceeded"],
    [404, "NoSuchBucket"],
  ])("stores nothing and serves existing files if the object store refuses writes with %d %s", async (status, code) => {
    const { files } = openaiClient(own);
    const made = await files.create({ file: await toFile(Buffer.from("kept"), "a"), purpose: "batch" });
    const large = 12_000_000;
    for (const [methods, size] of [
      [["PUT"], 10],
      [["PUT", "POST"], large],
      [["POST"], large],
      [["HEAD"], 10],
      [["HEAD"], large],
      [["PUT", "POST", "HEAD", "DELETE"], large],
    ] as const) {
      store.refusal = { methods, status, code };
      const file = await toFile(Buffer.alloc(size), "b");
      expect(await refusal(files.create({ file, purpose: "batch" }, { maxRetries: 0 }))).toMatch(/503.*Retry in 5 s/);
      expect((await files.list()).data.map(({ id }) => id)).toEqual([made.id]);
      expect(await (await files.content(made.id)).text()).toBe("kept");
      store.refusal = undefined;
    }
    await files.delete(made.id);
    await own.sweepFiles();
  });

  // A sweep takes 20 objects at a time; one that deletes none of them leaves the rest to the next sweep.
  test.each([
    [1, 1],
    [20, 2],
    [45, 3],
  ])(
    "deletes all other expired files if the object store refuses to delete the first %d objects",
    async (count, sweeps) => {
      const { files } = openaiClient(own);
      store.objects.clear();
      const made: string[] = [];
      for (let i = 0; i < count + 29; i++) {
        const expires_after = { anchor: "created_at" as const, seconds: 3_600 + i };
        made.push(
          (await files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch", expires_after })).id,
        );
      }
      const locked = made.slice(0, count);
      for (const id of made) await files.delete(id);
      store.refusal = { methods: ["DELETE"], status: 403, code: "AccessDenied", names: locked };
      for (let i = 0; i < sweeps; i++) await own.sweepFiles();
      expect([...store.objects.keys()].toSorted()).toEqual(locked.map((id) => `files/h/${id}`).toSorted());
      store.refusal = undefined;
      await own.sweepFiles();
      await own.sweepFiles();
      expect([...store.objects.keys()]).toEqual([]);
    },
  );

  test("treats an HTML page from the object store as a failed write, and never as a file", async () => {
    const { files } = openaiClient(own);
    const content = Buffer.from('{"custom_id":"a"}\n');
    const made = await files.create({ file: await toFile(content, "a"), purpose: "batch" });
    store.isPage = true;
    for (const bytes of [Buffer.from("x"), Buffer.alloc(12_000_000)]) {
      const creating = files.create({ file: await toFile(bytes, "b"), purpose: "batch" }, { maxRetries: 0 });
      expect(await refusal(creating)).toMatch(/503/);
    }
    const read = (await own.request(`/v1/files/${made.id}/content`)).text();
    expect(await read.catch(() => "broke off")).not.toContain("Sign in");
    store.isPage = false;
    expect((await files.list()).data.map(({ id }) => id)).toEqual([made.id]);
    expect(await (await files.content(made.id)).text()).toBe(content.toString());
  });

  test("reads whole files and correct batch lines from an object store without ranges", async () => {
    const { files } = openaiClient(own);
    const made = await files.create({ file: await toFile(Buffer.from("0123456789"), "a"), purpose: "batch" });
    store.ignoresRanges = true;
    expect(await (await files.content(made.id)).text()).toBe("0123456789");
    const objects = new S3Objects({
      ...{ endpoint: store.url, bucket: "files", region: undefined, prefix: "h/" },
      ...{ accessKeyId: "a", secretAccessKey: "b" },
    });
    const reading = Array.fromAsync(objects.read(made.id, { start: 2, end: 5 }));
    await expect(reading).rejects.toMatchObject({ code: "service_unavailable", detail: "files: s3 other_length" });
    store.ignoresRanges = false;
    expect(Buffer.concat(await Array.fromAsync(objects.read(made.id, { start: 2, end: 5 }))).toString()).toBe("234");
  });
});

test.skipIf(!canMount)(
  "an upload that does not fit on the disk is refused once, says that the disk is full, and leaves nothing there",
  async () => {
    await using disk = smallDisk(4);
    await using full = await startHeadrace({ yaml: `files: { directory: ${join(disk.path, "files")} }\n` });
    const { files } = openaiClient(full, { maxRetries: 2 });
    const file = await toFile(Buffer.alloc(6_000_000), "a.jsonl");
    expect(await refusal(files.create({ file, purpose: "batch" }))).toBe(
      "Error: 503 The server's disk is full, so the file was not stored. Its operator must make room first.",
    );
    await until(() => full.logged("request").length > 0, "the request is logged");
    expect(full.logged("request")).toMatchObject([{ status: 503, detail: "the disk of files is full: ENOSPC" }]);
    expect((await files.list()).data).toEqual([]);
    const small = await files.create({ file: await toFile(Buffer.from("{}"), "b.jsonl"), purpose: "batch" });
    expect(await (await files.content(small.id)).text()).toBe("{}");
  },
);
