// Files in a directory: written as drafts, synced, and then renamed.
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { isDiskFull } from "../../base/disk-full.ts";
import { GatewayError } from "../../base/errors.ts";
import type { ByteRange, ObjectStore, ObjectWriter } from "../../domain/files/object-store.ts";

/** A draft without writes for this long is abandoned. */
const abandonedMs = 24 * 3_600_000;
const readBytes = 64 * 1024;
/**
 * Name of the folder for unfinished files. If the folder is missing, the disk of the directory is not mounted, or the
 * directory was moved.
 */
const incomingFolder = "incoming";

export class DiskObjects implements ObjectStore {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reports whether a server has used the directory and the directory's disk is mounted. */
  wasUsed(): boolean {
    return existsSync(join(this.#directory, incomingFolder));
  }

  /** Makes the directory, and deletes drafts of killed processes. */
  async open(nowMs: number): Promise<void> {
    const incoming = join(this.#directory, incomingFolder);
    await mkdir(incoming, { recursive: true, mode: 0o700 });
    for (const name of await readdir(incoming)) {
      const path = join(incoming, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: nowMs }));
      if (nowMs - mtimeMs > abandonedMs) await rm(path, { force: true });
    }
  }

  async create(name: string): Promise<ObjectWriter> {
    const incoming = join(this.#directory, incomingFolder, `${name}.${Bun.randomUUIDv7()}`);
    const handle = await usable(open(incoming, "wx", 0o600));
    return new DiskWriter(handle, incoming, this.#folderOf(name), name);
  }

  async *read(name: string, { start, end }: ByteRange): AsyncGenerator<Uint8Array> {
    const handle = await this.#opened(name);
    try {
      for (let at = start; at < end; ) {
        const piece = Buffer.allocUnsafeSlow(Math.min(readBytes, end - at));
        const { bytesRead } = await usable(handle.read(piece, 0, piece.length, at));
        if (bytesRead === 0) throw unusable(Object.assign(new Error("The file ends early."), { code: "other_length" }));
        at += bytesRead;
        yield piece.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  }

  async delete(name: string): Promise<void> {
    try {
      await unlink(join(this.#folderOf(name), name));
    } catch (error) {
      if (!isMissing(error)) throw unusable(error);
      await this.#requireDirectory();
    }
  }

  async #opened(name: string): Promise<FileHandle> {
    try {
      return await open(join(this.#folderOf(name), name), "r");
    } catch (error) {
      if (!isMissing(error)) throw unusable(error);
      await this.#requireDirectory();
      throw new GatewayError(
        "not_found",
        "The content of this file is not here. Servers that share a database need one place for files: set files.s3, or files.directory to a directory that all of them have.",
      );
    }
  }

  /**
   * Rejects with `service_unavailable` if the whole directory is missing. Its files then count as unreachable and not
   * as deleted.
   */
  async #requireDirectory(): Promise<void> {
    await usable(stat(join(this.#directory, incomingFolder)));
  }

  /** Spreads files over folders, so that each stays fast to read. */
  #folderOf(name: string): string {
    return join(this.#directory, name.slice(-2));
  }
}

class DiskWriter implements ObjectWriter {
  readonly #handle: FileHandle;
  readonly #incoming: string;
  readonly #folder: string;
  readonly #name: string;

  constructor(handle: FileHandle, incoming: string, folder: string, name: string) {
    this.#handle = handle;
    this.#incoming = incoming;
    this.#folder = folder;
    this.#name = name;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      const { bytesWritten } = await usable(this.#handle.write(bytes, at));
      at += bytesWritten;
    }
  }

  async finish(): Promise<void> {
    await usable(this.#handle.sync());
    await usable(this.#handle.close());
    await usable(mkdir(this.#folder, { recursive: true, mode: 0o700 }));
    await usable(rename(this.#incoming, join(this.#folder, this.#name)));
    const folder = await usable(open(this.#folder, "r"));
    try {
      await usable(folder.sync());
    } finally {
      await folder.close();
    }
  }

  async abandon(): Promise<void> {
    // Errors are ignored: a later start deletes files in `incoming` that cannot be deleted now.
    await this.#handle.close().catch(() => {});
    await rm(this.#incoming, { force: true }).catch(() => {});
  }
}

async function usable<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    throw unusable(error);
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "ENOENT";
}

function unusable(error: unknown): GatewayError {
  const { code } = (error ?? {}) as { code?: unknown };
  if (isDiskFull(error)) {
    const message = "The server's disk is full, so the file was not stored. Its operator must make room first.";
    const detail = `the disk of files is full: ${String(code)}`;
    // A retry by an SDK would send the whole file again.
    return new GatewayError("service_unavailable", message, { detail, shouldRetry: false, cause: error });
  }
  return new GatewayError("service_unavailable", "Files cannot be read or written at the moment. Retry in 5 s.", {
    detail: `files: ${String(code ?? error)}`,
    retryAfterSeconds: 5,
    cause: error,
  });
}
