// Forms of a gigabyte: they pass unchanged, cost the disk their length and the process no memory, and leave nothing behind.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import {
  boundaryIn,
  type MediaRequest,
  type MediaServer,
  ownModel,
  startMediaServer,
} from "../support/media-server.ts";
import { startServerProcess } from "../support/server-process.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";
import { head, openRaw, type RawConnection } from "./raw-client.ts";

const mib = 1024 * 1024;
const formBytes = (long ? 1024 : 192) * mib;
/** Beyond what the process has before, with the form on its way in or out. */
const maxMoreBytes = 64 * mib;
const boundary = "----headrace-large";
const piece = Buffer.alloc(mib, "sound and \r\n--- noise ");

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** The most memory that a process and its children have had, each. */
function peaks(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return [String(pid), ...children.filter((child) => child !== "")].map((one) => {
    const status = readFileSync(`/proc/${one}/status`, "utf8");
    return 1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]);
  });
}

async function start(limits = ""): Promise<{ media: MediaServer; server: WatchedServer }> {
  const media = await startMediaServer();
  stack.push(media);
  const models = `models: [{ id: media, deployments: [{ upstream: up, model: ${ownModel} }] }]\n`;
  const yaml = `upstreams: [{ name: up, url: "${media.url}" }]\n${models}${limits}`;
  const server = await startWatchedServer({ yaml });
  stack.push(server);
  return { media, server };
}

const left = ({ dataDir }: WatchedServer) => readdirSync(join(dataDir, "forms"));

const firstFor = (by = boundary) =>
  `--${by}\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\nContent-Type: audio/mpeg\r\n\r\n`;
const first = firstFor();
const lastFor = (model: string, by = boundary) =>
  `\r\n--${by}\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--${by}--\r\n`;

function begin({ key }: { key: string }, length: number): string {
  return head("POST /v1/audio/transcriptions HTTP/1.1", [
    "Host: 127.0.0.1",
    `Authorization: Bearer ${key}`,
    `Content-Type: multipart/form-data; boundary=${boundary}`,
    `Content-Length: ${length}`,
  ]);
}

/** The SHA-256 of the form that its server should see. */
function digestFor(sent: MediaRequest | undefined, bytes: number): string {
  const by = (sent && boundaryIn(sent)) ?? "";
  const hash = new Bun.CryptoHasher("sha256").update(firstFor(by));
  for (let i = 0; i < Math.ceil(bytes / mib); i++) hash.update(piece);
  return hash.update(lastFor(ownModel, by)).digest("hex");
}

/** Sends the form with its model behind the file. */
async function upload(server: { key: string }, connection: RawConnection, bytes: number): Promise<void> {
  const pieces = Math.ceil(bytes / mib);
  const last = lastFor("media");
  await connection.write(begin(server, first.length + pieces * mib + last.length) + first);
  for (let i = 0; i < pieces; i++) await connection.write(piece);
  await connection.write(last);
}

// hardening: F38
test("rewrites a large form with little extra memory and leaves nothing behind", async () => {
  const { media, server } = await start();
  // What is loaded and grows once is no part of it.
  const small = await openRaw(server.url);
  await upload(server, small, 4 * mib);
  await small.answered();
  await server.beginAnew();
  const before = (await server.figures()).rssBytes;
  const connection = await openRaw(server.url);
  await upload(server, connection, formBytes);
  const { answers } = await connection.answered(1, 600_000);
  expect(answers[0]?.status).toBe(200);
  expect(media.requests.at(-1)?.digest).toBe(digestFor(media.requests.at(-1), formBytes));
  const { peakRssBytes, busyMs } = await server.figures();
  expect(peakRssBytes - before).toBeLessThan(maxMoreBytes);
  // Nobody else waits for it: a megabyte is written and searched in less.
  expect(busyMs).toBeLessThan(withinMs(60));
  expect(left(server)).toEqual([]);
}, 600_000);

// hardening: F38
test("passes a large form from a worker to the primary in pieces without extra memory in either", async () => {
  const media = await startMediaServer();
  stack.push(media);
  const home = mkdtempSync(join(tmpdir(), "headrace-forms-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(home, { recursive: true, force: true }) });
  const config = join(home, "headrace.yaml");
  const models = `models: [{ id: media, deployments: [{ upstream: up, model: ${ownModel} }] }]\n`;
  writeFileSync(config, `upstreams: [{ name: up, url: "${media.url}" }]\n${models}`);
  const server = await startServerProcess({ dataDir: join(home, "data"), config, args: ["--workers", "2"] });
  stack.push(server);
  const { api_key: key } = JSON.parse(readFileSync(join(home, "data", "credentials.json"), "utf8"));
  const send = async (bytes: number) => {
    const connection = await openRaw(server.url);
    await upload({ key }, connection, bytes);
    const { answers } = await connection.answered(1, 600_000);
    const sent = media.requests.at(-1);
    expect([answers[0]?.status, sent?.digest]).toEqual([200, digestFor(sent, bytes)]);
  };
  // After so many each worker has had one, most likely.
  for (let i = 0; i < 8; i++) await send(8 * mib);
  const before = peaks(server.process.pid);
  expect(before.length).toBeGreaterThanOrEqual(3);
  await send(formBytes);
  const after = peaks(server.process.pid);
  for (const [i, peak] of after.entries()) expect(peak - (before[i] ?? 0)).toBeLessThan(maxMoreBytes);
  expect(readdirSync(join(home, "data", "forms"))).toEqual([]);
}, 600_000);

// hardening: F38
test("uses no more memory for a large form whose server reads slowly", async () => {
  const { server, media } = await start();
  await server.beginAnew();
  const before = (await server.figures()).rssBytes;
  const connections = await Promise.all(Array.from({ length: 4 }, () => openRaw(server.url)));
  await Promise.all(connections.map((connection) => upload(server, connection, 24 * mib)));
  await Promise.all(connections.map((connection) => connection.answered(1, 60_000)));
  expect(media.requests.length).toBe(4);
  expect((await server.figures()).peakRssBytes - before).toBeLessThan(maxMoreBytes);
});

// hardening: F38
test("removes the file, memory and descriptors of a large form whose client leaves", async () => {
  const { server, media } = await start(`limits: { form_bytes: ${64 * mib}, form_disk_bytes: ${64 * mib} }\n`);
  const warm = await openRaw(server.url);
  await upload(server, warm, 2 * mib);
  await warm.answered();
  const { descriptors } = await server.figures();
  for (let i = 0; i < 5; i++) {
    const connection = await openRaw(server.url);
    await connection.write(begin(server, 60 * mib) + first);
    for (let sent = 0; sent < 20; sent++) await connection.write(piece);
    connection.socket.destroy();
    // All of the space would be taken by the one before.
    await until(async () => (await server.figures()).descriptors <= descriptors, "its descriptors are given back");
  }
  const connection = await openRaw(server.url);
  await upload(server, connection, 60 * mib);
  const { answers } = await connection.answered(1, 60_000);
  expect(answers[0]?.status).toBe(200);
  expect(media.requests.length).toBe(2);
  expect(left(server)).toEqual([]);
});

// hardening: F38
test("refuses a form beyond its limit or the disk's before sending it", async () => {
  const limits = `limits: { form_bytes: ${64 * mib}, form_disk_bytes: ${64 * mib} }\n`;
  const { server } = await start(limits);
  const large = await openRaw(server.url);
  await large.write(begin(server, 65 * mib) + first);
  const tooLarge = await large.answered(1, 10_000);
  expect(tooLarge.answers[0]?.status).toBe(413);
  expect(tooLarge.answers[0]?.body).toContain(`${64 * mib} bytes`);
  const holding = await openRaw(server.url);
  await holding.write(begin(server, 60 * mib) + first);
  const refused = await until(async () => {
    const second = await openRaw(server.url);
    await second.write(begin(server, 60 * mib) + first);
    const { answers } = await second.answered(1, 2_000);
    second.socket.destroy();
    return answers[0]?.status === 429 ? answers[0] : undefined;
  }, "there is no room for a second one");
  expect(refused.headers["retry-after"]).toBeDefined();
  expect(refused.body).toContain("forms of this account");
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toContain(`headrace_form_spool_bytes_limit ${64 * mib}\n`);
  expect(metrics).toMatch(/^headrace_form_spool_bytes 62\d{6}$/m);
  holding.socket.destroy();
});
