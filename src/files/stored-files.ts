// Stores files that clients upload, with limits for each file and account, and deletes expired files.
import { randomUUID } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { ObjectStore, ObjectWriter } from "../domain/files/object-store.ts";
import type { FilePurpose, FileStore, MadeBy, StoredFile, UploadStore } from "../domain/files/stored-file.ts";

export interface FileBounds {
  /** Maximum bytes of one file. */
  maxBytes: number;
  /** Maximum bytes of all files of an account together. */
  accountBytes: number;
  /** Default and maximum number of days for which a file is stored. */
  retentionDays: number;
}

export interface StoredFilesOptions {
  files: FileStore;
  uploads: UploadStore;
  objects: ObjectStore;
  bounds: FileBounds;
  clock: Clock;
}

/** Facts of a file that are known before its content arrives. */
export interface FileBegin {
  filename: string;
  purpose: FilePurpose;
  /** File size that the client announced; 0 if unknown. */
  bytes: number;
}

export interface FileEnd {
  filename: string;
  purpose: FilePurpose;
  /** Seconds to store the file; null for the default. */
  keepSeconds: number | null;
}

const secondsPerDay = 86_400;
/** Seconds after which an unfinished upload expires. */
const givenUpSeconds = secondsPerDay;
/** Maximum objects that failed to be deleted. Beyond that, the cleanup forgets them and starts again. */
const maxUndeleted = 1_000;

export class StoredFiles {
  readonly bounds: FileBounds;
  readonly #options: StoredFilesOptions;
  /** Objects that the store failed to delete, with the errors. They are tried again after all others. */
  readonly #undeleted = new Map<string, unknown>();

  constructor(options: StoredFilesOptions) {
    this.#options = options;
    this.bounds = options.bounds;
  }

  /** Reserves space for a new file. Rejects with `request_too_large` if too little is left. */
  async begin(by: MadeBy, { filename, purpose, bytes }: FileBegin): Promise<NewFile> {
    const { files, objects, clock } = this.#options;
    const bounds = boundsFor(purpose, this.bounds);
    if (bytes > bounds.maxBytes) throw tooLarge(bounds);
    const id = `file-${randomUUID().replaceAll("-", "")}`;
    const createdAt = clock.nowSeconds();
    const { accountId, environment, keyId, appId, personId, madeBy } = by;
    const file: StoredFile = {
      ...{ id, accountId, environment, keyId, appId, personId, madeBy },
      ...{ purpose, filename, bytes, createdAt, expiresAt: createdAt + givenUpSeconds },
    };
    if (!(await files.begin(file, bounds.accountBytes))) throw accountFull(bounds);
    try {
      return new NewFile(file, await objects.create(id), { ...this.#options, bounds });
    } catch (error) {
      // Without this call, the reserved space would stay reserved for a day.
      await files.forget([id]).catch(() => {});
      throw error;
    }
  }

  /**
   * Reads the content of a file. Rejects with `not_found` if it is missing, and with the store's error if it is
   * shorter than `bytes`.
   */
  read({ id, bytes }: Pick<StoredFile, "id" | "bytes">): AsyncIterable<Uint8Array> {
    return this.#options.objects.read(id, { start: 0, end: bytes });
  }

  /**
   * Reads the file that a batch refers to, even if it is hidden. Rejects with `not_found` if the file no longer
   * exists.
   */
  async *readNamed(id: string): AsyncGenerator<Uint8Array> {
    const file = await this.#options.files.named(id);
    if (!file) throw new GatewayError("not_found", "The file has expired or was deleted.");
    yield* this.read(file);
  }

  /**
   * Deletes expired, deleted and unfinished files, and parts of uploads, at most `limit` of each. If an object cannot
   * be deleted, its row stays. If no object can be deleted, the call ends early and returns the error as `fault`. The
   * next call skips these objects, so that up to 1,000 of them do not block others.
   */
  async deleteExpired(
    nowSeconds: number,
    limit: number,
  ): Promise<{ deleted: number; isOver: boolean; fault?: unknown }> {
    const { files, uploads } = this.#options;
    const most = limit + this.#undeleted.size;
    const gone = await this.#deleteObjects(await files.gone(nowSeconds, most));
    await files.forget(gone.deleted);
    const parts = await this.#deleteObjects(await uploads.goneParts(nowSeconds, most));
    await uploads.forgetParts(parts.deleted);
    await uploads.forgetEnded(nowSeconds);
    const tried = Math.max(gone.tried, parts.tried);
    const deleted = gone.deleted.length + parts.deleted.length;
    const isOver = tried < limit;
    if (!isOver && deleted > 0 && this.#undeleted.size <= maxUndeleted) return { deleted, isOver };
    const [fault] = this.#undeleted.values();
    if (isOver || this.#undeleted.size > maxUndeleted) this.#undeleted.clear();
    return { deleted, isOver, fault };
  }

  async #deleteObjects(ids: readonly string[]): Promise<{ tried: number; deleted: string[] }> {
    const tried = ids.filter((id) => !this.#undeleted.has(id));
    const deleted: string[] = [];
    for (const id of tried) {
      try {
        await this.#options.objects.delete(id);
        deleted.push(id);
      } catch (error) {
        this.#undeleted.set(id, error);
      }
    }
    return { tried: tried.length, deleted };
  }
}

/** A file that is being written. */
export class NewFile {
  readonly #file: StoredFile;
  readonly #writer: ObjectWriter;
  readonly #options: StoredFilesOptions;
  #bytes = 0;
  #isWritten = false;

  constructor(file: StoredFile, writer: ObjectWriter, options: StoredFilesOptions) {
    this.#file = file;
    this.#writer = writer;
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Writes bytes, and resolves when more may be written. Rejects with `request_too_large` beyond the limit. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#options.bounds.maxBytes) throw tooLarge(this.#options.bounds);
    await this.#writer.write(bytes);
  }

  /** Completes the file. Resolves once it can be read. */
  async finish({ filename, purpose, keepSeconds }: FileEnd): Promise<StoredFile> {
    const { files, bounds } = this.#options;
    await this.#writer.finish();
    this.#isWritten = true;
    const expiresAt = this.#file.createdAt + Math.min(keepSeconds ?? Number.POSITIVE_INFINITY, maxSeconds(bounds));
    const file = { ...this.#file, filename, purpose, bytes: this.#bytes, expiresAt };
    if (!(await files.finish(file, bounds.accountBytes))) throw accountFull(bounds);
    return file;
  }

  /** Deletes what was written so far. Never rejects: the periodic cleanup deletes the rest. */
  async abandon(): Promise<void> {
    const { files, objects } = this.#options;
    const { id } = this.#file;
    if (!this.#isWritten) await this.#writer.abandon();
    try {
      // The row is marked first, so that the owner never finds a file without its content.
      await files.giveUp(id);
      await objects.delete(id);
      await files.forget([id]);
    } catch {
      // The periodic cleanup deletes the file later. If it was already finished, it stays complete.
    }
  }
}

/** Batch results have no size limit, because the number of requests in a batch is limited. */
function boundsFor(purpose: FilePurpose, bounds: FileBounds): FileBounds {
  if (purpose !== "batch_output") return bounds;
  return { ...bounds, maxBytes: Number.MAX_SAFE_INTEGER, accountBytes: Number.MAX_SAFE_INTEGER };
}

function maxSeconds({ retentionDays }: FileBounds): number {
  return retentionDays * secondsPerDay;
}

export function tooLarge({ maxBytes }: FileBounds): GatewayError {
  return new GatewayError(
    "request_too_large",
    `A file may have at most ${maxBytes} bytes (files.max_bytes). Split it, or have the bound raised.`,
    { param: "file" },
  );
}

export function accountFull({ accountBytes }: FileBounds): GatewayError {
  return new GatewayError(
    "request_too_large",
    `The files of this account would have more than ${accountBytes} bytes together (files.account_bytes). Delete some first.`,
    { param: "file" },
  );
}
