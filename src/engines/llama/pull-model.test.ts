// Tests a pull from a name on the hub to a usable model, with the real demo model and the real inspection.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HubServer } from "../../../tests/fixtures/hub-server.ts";
import type { HubTiming } from "./hub-request.ts";
import { listModels, modelsDirectory } from "./model-store.ts";
import { type PulledModel, type PullObserver, pullModel } from "./pull-model.ts";
import { SetupError } from "./setup-error.ts";

const timing: HubTiming = { firstByteTimeoutMs: 5_000, stallTimeoutMs: 5_000, retryDelaysMs: [1, 1] };
const quiet: PullObserver = { selected() {}, progress() {}, retrying() {}, inspecting() {} };

let gguf: Uint8Array;
let server: HubServer;
let dataDir: string;

beforeAll(async () => {
  gguf = await readFile(new URL("../../../models/tiny-demo/tiny-demo.gguf", import.meta.url));
  server = await HubServer.start();
});

afterAll(() => server.stop());

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "headrace-pull-"));
  server.requests.length = 0;
  server.faults = [];
  server.put("Acme/Tiny-GGUF", [
    { path: "README.md", content: new Uint8Array([1]), inGit: true },
    { path: "Tiny-Q8_0.gguf", content: gguf },
    { path: "Tiny-Q2_K.gguf", content: new Uint8Array([1, 2, 3]) },
  ]);
});

afterEach(() => rm(dataDir, { recursive: true, force: true }));

interface Asked {
  source?: string;
  name?: string;
  signal?: AbortSignal;
  observer?: Partial<PullObserver>;
}

function pull({ source = "hf:Acme/Tiny-GGUF", name, signal, observer }: Asked = {}): Promise<PulledModel> {
  return pullModel(
    {
      source,
      name,
      dataDir,
      hub: { endpoint: server.endpoint, token: undefined, timing },
      signal: signal ?? new AbortController().signal,
    },
    { ...quiet, ...observer },
  );
}

async function failureOf(work: Promise<unknown>): Promise<SetupError> {
  const error = await work.catch((reason: unknown) => reason);
  if (!(error instanceof SetupError)) throw new Error(`Expected a SetupError, got ${String(error)}`);
  return error;
}

async function stored(): Promise<string[]> {
  return (await readdir(modelsDirectory(dataDir))).sort();
}

describe("a pulled model", () => {
  test("pulls the preferred file, inspects it and lists it for the server", async () => {
    const selected: unknown[] = [];
    const { manifest, alreadyThere } = await pull({
      observer: { selected: (model, id, chosen) => void selected.push([model.path, id, chosen]) },
    });
    expect(selected).toEqual([["Tiny-Q8_0.gguf", "tiny-q8_0", true]]);
    expect(alreadyThere).toBe(false);
    expect(manifest).toEqual({
      id: "tiny-q8_0",
      file: join(modelsDirectory(dataDir), "tiny-q8_0.gguf"),
      otherFiles: [],
      bytes: gguf.length,
      sha256: createHash("sha256").update(gguf).digest("hex"),
      source: "hf:Acme/Tiny-GGUF:Tiny-Q8_0.gguf",
      pulledAt: expect.any(Number),
      context: 1024,
      capabilities: { chat: true, completion: true, embeddings: true, tokenize: true },
      tools: false,
    });
    expect(await listModels(dataDir)).toEqual([manifest]);
    expect(await stored()).toEqual(["tiny-q8_0.gguf", "tiny-q8_0.json"]);
  });

  test("gives a pulled model and its files the requested id", async () => {
    await pull({ source: "hf:Acme/Tiny-GGUF:Q8_0", name: "mine" });
    expect(await stored()).toEqual(["mine.gguf", "mine.json"]);
  });

  test("does not download a pulled model twice", async () => {
    await pull();
    server.requests.length = 0;
    expect((await pull()).alreadyThere).toBe(true);
    expect(server.storageRequests()).toEqual([]);
  });

  test("downloads a model again if its file was damaged on disk", async () => {
    await pull();
    const path = join(modelsDirectory(dataDir), "tiny-q8_0.gguf");
    const damaged = new Uint8Array(gguf);
    damaged[1_000_000] = (damaged[1_000_000] ?? 0) ^ 1;
    await writeFile(path, damaged);
    expect((await pull()).alreadyThere).toBe(false);
    expect(await readFile(path)).toEqual(Buffer.from(gguf));
  });
});

describe("a split model", () => {
  const parts = ["Q8_0/Big-Q8_0-00001-of-00002.gguf", "Q8_0/Big-Q8_0-00002-of-00002.gguf"];

  beforeEach(() => {
    server.put(
      "Acme/Tiny-GGUF",
      parts.map((path) => ({ path, content: gguf })),
    );
  });

  test("pulls all parts of a split model under names that the engine can follow", async () => {
    const seen: number[] = [];
    const { manifest } = await pull({ observer: { progress: (bytes) => void seen.push(bytes) } });
    expect(manifest.bytes).toBe(2 * gguf.length);
    expect(await stored()).toEqual(["big-q8_0-00001-of-00002.gguf", "big-q8_0-00002-of-00002.gguf", "big-q8_0.json"]);
    expect(await listModels(dataDir)).toEqual([manifest]);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(seen.at(-1)).toBe(2 * gguf.length);
  });

  test("resumes a split model with the missing part", async () => {
    const abort = new AbortController();
    const half = gguf.length + 1_000_000;
    const stopped = pull({
      signal: abort.signal,
      observer: { progress: (bytes) => bytes >= half && abort.abort(new Error("stop")) },
    });
    expect(await stopped.catch((error: Error) => error.message)).toBe("stop");
    server.requests.length = 0;
    await pull();
    expect(server.storageRequests()).toHaveLength(1);
    expect(server.storageRequests()[0]?.path).toContain("00002-of-00002");
    expect(server.storageRequests()[0]?.range).toMatch(/^bytes=\d{7,}-$/);
  });
});

describe("conflicts between pulls", () => {
  test("asks for another id if one is used by a model from elsewhere", async () => {
    await pull();
    server.put("Other/Tiny-GGUF", [{ path: "Tiny-Q8_0.gguf", content: gguf }]);
    const { message } = await failureOf(pull({ source: "hf:Other/Tiny-GGUF" }));
    expect(message).toContain("tiny-q8_0 is already here, from hf:Acme/Tiny-GGUF:Tiny-Q8_0.gguf");
    expect(message).toContain("--name");
  });

  test("refuses an id that resembles a part of a split model", async () => {
    const failure = await failureOf(pull({ name: "big-00001-of-00002" }));
    expect([failure.kind, failure.message]).toEqual([
      "misuse",
      "The id big-00001-of-00002 is what a part of a split model big is called. Choose another id with --name.",
    ]);
    server.put("Other/Odd-GGUF", [{ path: "Odd-Q8_0-00001-OF-00002.gguf", content: gguf }]);
    expect((await failureOf(pull({ source: "hf:Other/Odd-GGUF" }))).message).toContain("odd-q8_0-00001-of-00002");
    expect(server.storageRequests()).toEqual([]);
  });

  test("refuses a second pull of a model while the first runs", async () => {
    server.faults = [{ stallAfterBytes: 1_000_000 }];
    const abort = new AbortController();
    const begun = Promise.withResolvers<void>();
    const first = pull({
      signal: abort.signal,
      observer: { progress: (bytes) => bytes >= 1_000_000 && begun.resolve() },
    });
    await begun.promise;
    expect((await failureOf(pull())).message).toContain("Another headrace pull is fetching tiny-q8_0");
    abort.abort(new Error("stop"));
    await first.catch(() => {});
    await pull();
    expect(await stored()).toEqual(["tiny-q8_0.gguf", "tiny-q8_0.json"]);
  });

  test("ignores the lock of a killed pull", async () => {
    await pull();
    const ended = Bun.spawn(["true"]);
    await ended.exited;
    await writeFile(join(modelsDirectory(dataDir), "tiny-q8_0.lock"), String(ended.pid));
    await pull();
    expect(await stored()).toEqual(["tiny-q8_0.gguf", "tiny-q8_0.json"]);
  });
});

describe("a failing pull", () => {
  test("does not list a file that the engine cannot use, and names its path", async () => {
    const { message } = await failureOf(pull({ source: "hf:Acme/Tiny-GGUF:Q2_K" }));
    expect(message).toContain("not a GGUF file");
    expect(message).toContain(join(modelsDirectory(dataDir), "tiny-q2_k.gguf"));
    expect(await listModels(dataDir)).toEqual([]);
  });

  test("reports missing disk space before the first byte", async () => {
    const huge = 1e15;
    const listing = [{ type: "file", path: "huge.gguf", size: huge, lfs: { oid: "a".repeat(64), size: huge } }];
    server.hubAnswers.set("/api/models/Acme/Huge", { status: 200, body: JSON.stringify(listing) });
    const { message } = await failureOf(pull({ source: "hf:Acme/Huge" }));
    expect(message).toContain("1000 TB are needed");
    expect(server.storageRequests()).toEqual([]);
  });

  test("names an unwritable path and an alternative", async () => {
    dataDir = join(dataDir, "file");
    await writeFile(dataDir, "");
    expect((await failureOf(pull())).message).toBe(
      `${dataDir} cannot be written to (EEXIST). Choose another place with --data-dir.`,
    );
  });
});
