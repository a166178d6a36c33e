// Tests downloads from a real local hub and its storage server: a file is complete and correct, or absent.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HubServer } from "../../../tests/fixtures/hub-server.ts";
import { downloadFile } from "./download.ts";
import { type Hub, redirectTarget } from "./hub-request.ts";
import { listHubFiles } from "./hugging-face.ts";
import { parseModelSource } from "./model-source.ts";
import { SetupError } from "./setup-error.ts";

const content = randomBytes(3_000_000);
const sha256 = createHash("sha256").update(content).digest("hex");
const source = parseModelSource("hf:acme/model-GGUF");
const timing = { firstByteTimeoutMs: 5_000, stallTimeoutMs: 300, retryDelaysMs: [1, 1, 1] };

let server: HubServer;
let directory: string;
let target: string;

beforeEach(async () => {
  server = await HubServer.start();
  server.put("acme/model-GGUF", [{ path: "sub dir/model-Q8_0.gguf", content }]);
  directory = await mkdtemp(join(tmpdir(), "headrace-download-"));
  target = join(directory, "model.gguf");
});

afterEach(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

interface Watch {
  bytes: number[];
  retries: string[];
  signal?: AbortSignal;
  onBytes?: (bytes: number) => void;
}

async function download(watch: Partial<Watch> = {}, hub: Partial<Hub> = {}): Promise<string> {
  const signal = watch.signal ?? new AbortController().signal;
  const used: Hub = { endpoint: server.endpoint, token: undefined, timing, ...hub };
  const [file] = await listHubFiles({ ...used, token: undefined }, source, signal);
  if (file === undefined) throw new Error("The hub lists no file.");
  return await downloadFile({
    hub: used,
    source,
    file,
    target,
    signal,
    onBytes: (bytes) => {
      watch.bytes?.push(bytes);
      watch.onBytes?.(bytes);
    },
    onRetry: (reason) => void watch.retries?.push(reason),
  });
}

async function failureOf(work: Promise<unknown>): Promise<SetupError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof SetupError)) throw new Error(`Expected a SetupError, got ${String(error)}`);
  return error;
}

async function left(): Promise<string[]> {
  return (await readdir(directory)).sort();
}

/** Leaves a partial file of the first `bytes` bytes, as an interrupted run does. */
async function interruptAfter(bytes: number): Promise<void> {
  server.faults = [{ stallAfterBytes: bytes }];
  const abort = new AbortController();
  const stopped = download({ signal: abort.signal, onBytes: (now) => now >= bytes && abort.abort(new Error("stop")) });
  expect(await stopped.catch((error: Error) => error.message)).toBe("stop");
  server.requests.length = 0;
}

describe("a download", () => {
  test("downloads a whole file, verifies its checksum and leaves nothing behind", async () => {
    const bytes: number[] = [];
    expect(await download({ bytes })).toBe(sha256);
    expect(await readFile(target)).toEqual(content);
    expect(await left()).toEqual(["model.gguf"]);
    expect(bytes[0]).toBe(0);
    expect(bytes.at(-1)).toBe(content.length);
  });

  test("resumes after a lost connection", async () => {
    server.faults = [{ cutAfterBytes: 1_200_000 }, { cutAfterBytes: 500_000 }];
    const retries: string[] = [];
    expect(await download({ retries })).toBe(sha256);
    expect(await readFile(target)).toEqual(content);
    expect(retries).toHaveLength(2);
    expect(retries[0]).toContain("was lost");
    const [, second, third] = server.storageRequests();
    expect(Number(second?.range?.match(/\d+/)?.[0])).toBeGreaterThan(0);
    expect(Number(third?.range?.match(/\d+/)?.[0])).toBeGreaterThan(Number(second?.range?.match(/\d+/)?.[0]));
  });

  test("resumes when the server falls silent", async () => {
    server.faults = [{ stallAfterBytes: 100_000 }];
    const retries: string[] = [];
    expect(await download({ retries })).toBe(sha256);
    expect(retries).toEqual([`${server.storageHost} sent nothing for 0.3 s`]);
  });

  test("waits as long as a busy server asks, and tries again", async () => {
    server.faults = [{ status: 503, headers: { "retry-after": "0" } }];
    const retries: string[] = [];
    expect(await download({ retries })).toBe(sha256);
    expect(retries[0]).toContain("HTTP 503");
  });

  test("gives up after the last attempt and keeps the downloaded part", async () => {
    server.faults = Array.from({ length: 9 }, () => ({ cutAfterBytes: 10_000 }));
    const error = await failureOf(download());
    expect(error.kind).toBe("network");
    expect(server.storageRequests()).toHaveLength(4);
    expect(await left()).toEqual(["model.gguf.part", "model.gguf.part.json"]);
  });

  test("does not count attempts that make much progress", async () => {
    server.put("acme/model-GGUF", [{ path: "big.gguf", content: randomBytes(9_000_000) }]);
    server.faults = Array.from({ length: 6 }, () => ({ cutAfterBytes: 1_400_000 }));
    await download();
    expect(server.storageRequests()).toHaveLength(7);
  });
});

describe("a second run of a download", () => {
  test("requests only the rest, and hashes the earlier part too", async () => {
    await interruptAfter(1_000_000);
    const bytes: number[] = [];
    expect(await download({ bytes })).toBe(sha256);
    expect(server.storageRequests().map((request) => request.range)).toEqual(["bytes=1000000-"]);
    expect(bytes[0]).toBe(1_000_000);
    expect(await left()).toEqual(["model.gguf"]);
  });

  test("starts over if the server ignores Range", async () => {
    await interruptAfter(1_000_000);
    server.ignoresRange = true;
    const retries: string[] = [];
    expect(await download({ retries })).toBe(sha256);
    expect(await readFile(target)).toEqual(content);
    expect(retries[0]).toContain("cannot continue a file");
  });

  test("starts over if the server's version has another tag", async () => {
    await interruptAfter(1_000_000);
    server.etag = '"v2"';
    const retries: string[] = [];
    expect(await download({ retries })).toBe(sha256);
    expect(retries[0]).toContain("another version");
    expect(server.storageRequests().map((request) => request.range)).toEqual(["bytes=1000000-", undefined]);
  });

  test("starts over if the answer continues at another byte", async () => {
    await interruptAfter(1_000_000);
    server.faults = [{ headers: { "content-range": `bytes 999999-2999999/3000000` } }];
    expect(await download()).toBe(sha256);
    expect(await readFile(target)).toEqual(content);
  });

  test("starts over if the hub now lists other content", async () => {
    await interruptAfter(1_000_000);
    const other = randomBytes(2_000_000);
    server.put("acme/model-GGUF", [{ path: "sub dir/model-Q8_0.gguf", content: other }]);
    await download();
    expect(await readFile(target)).toEqual(other);
    expect(server.storageRequests()[0]?.range).toBeUndefined();
  });

  test("downloads again if the disk has damaged the part", async () => {
    await interruptAfter(1_000_000);
    const part = await readFile(`${target}.part`);
    part[500_000] = (part[500_000] ?? 0) ^ 1;
    await writeFile(`${target}.part`, part);
    const retries: string[] = [];
    expect(await download({ retries })).toBe(sha256);
    expect(retries).toEqual(["The part from an earlier run is damaged"]);
    expect(await readFile(target)).toEqual(content);
  });

  test("requests nothing if the file is complete and only unrenamed", async () => {
    await interruptAfter(1_000_000);
    await writeFile(`${target}.part`, content);
    expect(await download()).toBe(sha256);
    expect(server.storageRequests()).toHaveLength(0);
  });

  test("does not trust a part without its record", async () => {
    await writeFile(`${target}.part`, content.subarray(0, 1000));
    expect(await download()).toBe(sha256);
    expect(server.storageRequests()[0]?.range).toBeUndefined();
  });
});

describe("wrong content of a download", () => {
  test("discards a file of the right length with a wrong checksum", async () => {
    server.sentInstead = randomBytes(content.length);
    const error = await failureOf(download());
    expect(error.message).toContain("checksum is wrong");
    expect(await left()).toEqual([]);
  });

  test("refuses a file longer than listed before it fills the disk", async () => {
    server.sentInstead = randomBytes(content.length + 10);
    server.faults = [{ withoutLength: true }];
    expect((await failureOf(download())).message).toContain("sends more than the 3000000 bytes listed");
    expect(await left()).toEqual([]);
  });

  test("does not read content announced with another length", async () => {
    server.sentInstead = content.subarray(0, 130);
    expect((await failureOf(download())).message).toContain("lists 3000000 bytes, but");
    expect(await stat(target).catch(() => "absent")).toBe("absent");
  });

  test("detects wrong content of a small git file by its git hash", async () => {
    server.put("acme/model-GGUF", [{ path: "small.gguf", content: content.subarray(0, 5000), inGit: true }]);
    expect(await download()).toBe(createHash("sha256").update(content.subarray(0, 5000)).digest("hex"));
    await rm(target);
    server.sentInstead = randomBytes(5000);
    expect((await failureOf(download())).message).toContain("checksum is wrong");
  });
});

describe("the token of the hub", () => {
  // hardening: F33
  test("sends the token to the hub and never to the storage that it redirects to", async () => {
    await download({}, { token: "hf_secret" });
    const resolved = server.requests.filter(
      (request) => request.path.includes("/resolve/") && request.server === "hub",
    );
    expect(resolved.map((request) => request.authorization)).toEqual(["Bearer hf_secret"]);
    expect(server.storageRequests().map((request) => request.authorization)).toEqual([undefined]);
  });

  test("shows neither the token nor the storage signature in an error", async () => {
    server.faults = Array.from({ length: 4 }, () => ({ status: 500 }));
    const error = await failureOf(download({}, { token: "hf_secret" }));
    expect(error.message).not.toContain("secret");
    expect(error.message).toContain("HTTP 500");
  });
});

describe("redirects of a download", () => {
  test("gives up circular redirects", async () => {
    server.hubAnswers.set("/acme/model-GGUF/resolve", { status: 302, headers: { location: "?again" } });
    expect((await failureOf(download())).message).toContain("redirects in circles");
  });

  test("refuses a redirect from https to http, and follows one from an http mirror", () => {
    const from = new URL("https://hub.example/a");
    expect(redirectTarget("/b", from, from).href).toBe("https://hub.example/b");
    expect(() => redirectTarget("http://hub.example/b", from, from)).toThrow("only https is followed");
    expect(() => redirectTarget(null, from, from)).toThrow("without a usable address");
    const mirror = new URL("http://mirror.example/");
    expect(redirectTarget("http://other.example/b", mirror, mirror).host).toBe("other.example");
  });

  test("refuses a redirect to another scheme", async () => {
    server.hubAnswers.set("/acme/model-GGUF/resolve", { status: 302, headers: { location: "file:///etc/passwd" } });
    expect((await failureOf(download())).message).toContain("only https is followed");
  });
});
