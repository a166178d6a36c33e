// Downloads one file to a `.part` file that can be resumed, checks the hash, and renames it to its final name.
import { type FileHandle, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type ContentCheck, contentCheck } from "./content-check.ts";
import { type Hub, type HubResponse, hubGet } from "./hub-request.ts";
import { hubFailure, hubFileAddress } from "./hugging-face.ts";
import type { HubFile, ModelSource } from "./model-source.ts";
import { SetupError } from "./setup-error.ts";
import { syncNames } from "./synced-files.ts";

export interface Download {
  hub: Hub;
  source: ModelSource;
  file: HubFile;
  /** The final path. The partial file has this path plus `.part`. */
  target: string;
  signal: AbortSignal;
  /**
   * Called at the start and after every chunk with the bytes on disk. The number falls if the download starts
   * again.
   */
  onBytes(bytes: number): void;
  /** Called before each retry, ahead of the wait. */
  onRetry(reason: string, waitMs: number): void;
}

/** The record beside a partial file. The download is resumed only if the hub still lists the same content. */
const partRecord = z.object({ bytes: z.number(), checksum: z.string(), etag: z.string().nullable() });

interface Part {
  handle: FileHandle;
  recordPath: string;
  check: ContentCheck;
  bytes: number;
  etag: string | null;
  /** True if some bytes are from an earlier run. If the hash is wrong, the disk may have damaged them. */
  resumed: boolean;
}

// If an attempt downloaded at least this much, the count of failed attempts starts again.
const goodProgressBytes = 1_000_000;

/**
 * Downloads a file and resolves to its SHA-256. Rejects with a SetupError, or with the reason of `signal`. The
 * partial file then stays for a later run, unless its content was wrong.
 */
export async function downloadFile(download: Download): Promise<string> {
  const partPath = `${download.target}.part`;
  const part = await openPart(download, partPath);
  let sha256: string;
  try {
    sha256 = await complete(download, part);
    await part.handle.sync();
  } catch (error) {
    await part.handle.close();
    if (error instanceof ContentError) await removePart(download.target);
    throw error;
  }
  await part.handle.close();
  await rename(partPath, download.target);
  await syncNames(dirname(download.target));
  await rm(part.recordPath, { force: true });
  return sha256;
}

/** Removes a partial file and its record. */
async function removePart(target: string): Promise<void> {
  await rm(`${target}.part`, { force: true });
  await rm(`${target}.part.json`, { force: true });
}

/** The error for content that differs from what the hub lists. The partial file is deleted. */
class ContentError extends SetupError {}

async function complete(download: Download, part: Part): Promise<string> {
  for (;;) {
    await fetchRest(download, part);
    const { sha256, matches } = part.check.finish();
    if (matches) return sha256;
    if (!part.resumed) {
      throw new ContentError(
        `${download.file.path}: the checksum is wrong, so the download was thrown away. Run the command again; if it happens again, the file on the hub or a proxy on the way is broken.`,
      );
    }
    download.onRetry("The part from an earlier run is damaged", 0);
    await restart(download, part);
  }
}

async function fetchRest(download: Download, part: Part): Promise<void> {
  const { retryDelaysMs } = download.hub.timing;
  let failures = 0;
  while (part.bytes < download.file.bytes) {
    const before = part.bytes;
    try {
      await attempt(download, part);
    } catch (error) {
      download.signal.throwIfAborted();
      if (!(error instanceof SetupError && error.transient)) throw error;
      if (part.bytes - before >= goodProgressBytes) failures = 0;
      const delayMs = retryDelaysMs[failures++];
      if (delayMs === undefined) throw error;
      const waitMs = Math.max(delayMs, error.retryAfterMs ?? 0);
      download.onRetry(error.message.replace(/\.$/, ""), waitMs);
      await wait(waitMs, undefined, { signal: download.signal }).catch(() => download.signal.throwIfAborted());
    }
  }
}

async function attempt(download: Download, part: Part): Promise<void> {
  const { hub, source, file, signal } = download;
  const range = part.bytes > 0 ? { range: `bytes=${part.bytes}-` } : {};
  const response = await hubGet(hub, hubFileAddress(hub, source, file.path), range, signal);
  try {
    await accept(response, download, part);
    for await (const chunk of response.chunks()) await append(download, part, chunk);
  } finally {
    response.discard();
  }
  if (part.bytes < file.bytes) {
    throw new SetupError(`${response.host} ended the file too early.`, { kind: "network" });
  }
}

/**
 * Decides by status and headers whether the body resumes the partial file or starts it again. Throws for any
 * other answer.
 */
async function accept(response: HubResponse, download: Download, part: Part): Promise<void> {
  const { status, headers } = response;
  const etag = headers.get("etag");
  if (status === 200) {
    const length = headers.get("content-length");
    if (length !== null && Number(length) !== download.file.bytes) {
      throw new SetupError(
        `${download.file.path}: the hub lists ${download.file.bytes} bytes, but ${response.host} sends ${length}.`,
      );
    }
    if (part.bytes > 0) {
      download.onRetry(`${response.host} cannot continue a file, so it is started again`, 0);
      await restart(download, part);
    }
    await remember(download, part, etag);
    return;
  }
  if (part.bytes > 0 && (status === 206 || status === 416)) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "");
    const continues = status === 206 && Number(range?.[1]) === part.bytes;
    const sameSize = range?.[2] === "*" || Number(range?.[2]) === download.file.bytes;
    const sameTag = etag === null || part.etag === null || etag === part.etag;
    if (continues && sameSize && sameTag) return;
    await restart(download, part);
    throw new SetupError(`${response.host} has another version of the file, so it is started again.`, {
      kind: "network",
    });
  }
  throw hubFailure(response, download.source, download.hub);
}

async function append(download: Download, part: Part, chunk: Uint8Array): Promise<void> {
  if (part.bytes + chunk.length > download.file.bytes) {
    throw new ContentError(
      `${download.file.path}: the server sends more than the ${download.file.bytes} bytes listed.`,
    );
  }
  await writeAll(part.handle, chunk);
  part.check.update(chunk);
  part.bytes += chunk.length;
  download.onBytes(part.bytes);
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await handle.write(chunk, written, chunk.length - written)).bytesWritten;
  }
}

async function openPart(download: Download, path: string): Promise<Part> {
  const recordPath = `${path}.json`;
  const record = await readRecord(recordPath);
  const usable = record?.bytes === download.file.bytes && record.checksum === download.file.checksum.hex;
  // The file is opened for appending, so that after a truncation the next write begins at 0.
  const handle = await open(path, "a+", 0o644);
  const part: Part = {
    handle,
    recordPath,
    check: contentCheck(download.file),
    bytes: 0,
    etag: record?.etag ?? null,
    resumed: false,
  };
  try {
    if (usable) await readExisting(download, part);
    else await handle.truncate(0);
    download.onBytes(part.bytes);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return part;
}

/** Hashes the bytes from an earlier run, so that the hash covers the whole file. */
async function readExisting(download: Download, part: Part): Promise<void> {
  if ((await part.handle.stat()).size > download.file.bytes) await part.handle.truncate(0);
  const buffer = new Uint8Array(1024 * 1024);
  for (;;) {
    download.signal.throwIfAborted();
    const { bytesRead } = await part.handle.read(buffer, 0, buffer.length, part.bytes);
    if (bytesRead === 0) break;
    part.check.update(buffer.subarray(0, bytesRead));
    part.bytes += bytesRead;
  }
  part.resumed = part.bytes > 0;
}

async function restart(download: Download, part: Part): Promise<void> {
  await part.handle.truncate(0);
  part.check = contentCheck(download.file);
  part.bytes = 0;
  part.etag = null;
  part.resumed = false;
  download.onBytes(0);
}

async function remember(download: Download, part: Part, etag: string | null): Promise<void> {
  part.etag = etag;
  const record: z.infer<typeof partRecord> = {
    bytes: download.file.bytes,
    checksum: download.file.checksum.hex,
    etag,
  };
  await writeFile(part.recordPath, JSON.stringify(record), { mode: 0o644 });
}

async function readRecord(path: string): Promise<z.infer<typeof partRecord> | undefined> {
  try {
    return partRecord.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    // The record is missing or damaged. A partial file without a record is useless, and the download begins again.
    return undefined;
  }
}
