// Files of clients: written, read and deleted, within the bounds of one file and of an account, and swept once they have expired.
import { randomUUID } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { ByteRange, ObjectStore, ObjectWriter } from "../domain/files/object-store.ts";
import type { FilePurpose, FileStore, MadeBy, StoredFile, UploadStore } from "../domain/files/stored-file.ts";

export interface FileBounds {
  /** The most of one file. */
  maxBytes: number;
  /** The most of all files of an account together. */
  accountBytes: number;
  /** Days for which a file is kept that says nothing of it, and the most that one may say. */
  retentionDays: number;
}

export interface StoredFilesOptions {
  files: FileStore;
  uploads: UploadStore;
  objects: ObjectStore;
  bounds: FileBounds;
  clock: Clock;
}

/** What is known of a file before it is written. */
export interface FileBegin {
  filename: string;
  purpose: FilePurpose;
  /** How many are announced; 0 where nobody knows. */
  bytes: number;
}

export interface FileEnd {
  filename: string;
  purpose: FilePurpose;
  /** Seconds; null: as usual. */
  keepSeconds: number | null;
}

const secondsPerDay = 86_400;
/** A file that is on its way for so long is given up. */
const givenUpSeconds = secondsPerDay;

export class StoredFiles {
  readonly bounds: FileBounds;
  readonly #options: StoredFilesOptions;

  constructor(options: StoredFilesOptions) {
    this.#options = options;
    this.bounds = options.bounds;
  }

  /** Rejects with `request_too_large` where there is no room for it. */
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
      // What is set aside for it would be for a day.
      await files.forget([id]).catch(() => {});
      throw error;
    }
  }

  /** Rejects with `not_found` where its content is not there. */
  read({ id }: Pick<StoredFile, "id">, range?: ByteRange): AsyncIterable<Uint8Array> {
    return this.#options.objects.read(id, range);
  }

  /** Deletes what has expired, was deleted or was given up, `limit` of each kind at most; gives how much. */
  async deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    const { files, uploads, objects } = this.#options;
    const gone = await files.gone(nowSeconds, limit);
    for (const id of gone) await objects.delete(id);
    await files.forget(gone);
    const parts = await uploads.goneParts(nowSeconds, limit);
    for (const id of parts) await objects.delete(id);
    await uploads.forgetParts(parts);
    await uploads.forgetEnded(nowSeconds);
    return Math.max(gone.length, parts.length);
  }
}

/** A file that is being written. */
export class NewFile {
  readonly #file: StoredFile;
  readonly #writer: ObjectWriter;
  readonly #options: StoredFilesOptions;
  #bytes = 0;

  constructor(file: StoredFile, writer: ObjectWriter, options: StoredFilesOptions) {
    this.#file = file;
    this.#writer = writer;
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves once more may be written. Rejects with `request_too_large` beyond the bound of a file. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#options.bounds.maxBytes) throw tooLarge(this.#options.bounds);
    await this.#writer.write(bytes);
  }

  /** Resolves with the file once it is there for its readers. */
  async finish({ filename, purpose, keepSeconds }: FileEnd): Promise<StoredFile> {
    const { files, bounds, clock } = this.#options;
    await this.#writer.finish();
    const expiresAt = clock.nowSeconds() + Math.min(keepSeconds ?? Number.POSITIVE_INFINITY, mostSeconds(bounds));
    const file = { ...this.#file, filename, purpose, bytes: this.#bytes, expiresAt };
    if (!(await files.finish(file, bounds.accountBytes))) throw accountFull(bounds);
    return file;
  }

  /** Nothing of it stays. Never rejects: what cannot be deleted now is swept later. */
  async abandon(): Promise<void> {
    const { files, objects } = this.#options;
    const { id } = this.#file;
    await this.#writer.abandon();
    await objects
      .delete(id)
      .then(
        () => files.forget([id]),
        () => {},
      )
      .catch(() => {});
  }
}

/** Answers that were given are not lost for want of room: their number is bounded by that of the requests. */
function boundsFor(purpose: FilePurpose, bounds: FileBounds): FileBounds {
  if (purpose !== "batch_output") return bounds;
  return { ...bounds, maxBytes: Number.MAX_SAFE_INTEGER, accountBytes: Number.MAX_SAFE_INTEGER };
}

function mostSeconds({ retentionDays }: FileBounds): number {
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
