// A file is written as it comes: an upload, and a download, of many times the memory that the server may take for it.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { long } from "../support/long.ts";
import { startServerProcess } from "../support/server-process.ts";

const megabyte = 1024 * 1024;
const fileBytes = (long ? 1024 : 256) * megabyte;
const maxMoreBytes = 64 * megabyte;
const directory = mkdtempSync(join(tmpdir(), "headrace-upload-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Resident bytes of the process, as the system has them. */
function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) * 1024;
}

test("uses constant memory for a file of any length", async () => {
  const config = join(directory, "headrace.yaml");
  writeFileSync(config, `files: { max_bytes: ${2 * fileBytes} }\n`);
  const dataDir = join(directory, "data");
  await using server = await startServerProcess({ config, dataDir });
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")) as { api_key: string };
  const headers = { authorization: `Bearer ${key}` };
  const piece = Buffer.alloc(megabyte, "a line of a file\n");
  async function* form(bytes: number) {
    yield Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="large"\r\n\r\n');
    for (let sent = 0; sent < bytes; sent += piece.length) yield piece;
    yield Buffer.from('\r\n--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b--\r\n');
  }
  const upload = async (bytes: number) => {
    const response = await fetch(`${server.url}/v1/files`, {
      method: "POST",
      headers: { ...headers, "content-type": "multipart/form-data; boundary=b" },
      body: form(bytes) as unknown as ReadableStream,
    });
    return (await response.json()) as { id: string; bytes: number };
  };
  // What the way of a form needs by itself is loaded.
  await upload(megabyte);
  const before = residentBytes(server.process.pid);
  let most = before;
  const sampling = setInterval(() => {
    most = Math.max(most, residentBytes(server.process.pid));
  }, 20);
  const made = await upload(fileBytes);
  expect(made.bytes).toBe(fileBytes);
  let read = 0;
  const content = await fetch(`${server.url}/v1/files/${made.id}/content`, { headers });
  for await (const bytes of content.body as unknown as AsyncIterable<Uint8Array>) read += bytes.byteLength;
  clearInterval(sampling);
  expect(read).toBe(fileBytes);
  console.log(`${Math.round((most - before) / megabyte)} MiB more, for ${fileBytes / megabyte} MiB`);
  expect(most - before).toBeLessThan(maxMoreBytes);
}, 120_000);
