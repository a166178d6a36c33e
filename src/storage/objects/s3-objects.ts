// Files in an object store with the S3 API, through Bun's client.
import { S3Client } from "bun";
import { GatewayError } from "../../base/errors.ts";
import type { ByteRange, ObjectStore, ObjectWriter } from "../../domain/files/object-store.ts";

export interface S3Settings {
  endpoint: string | undefined;
  bucket: string;
  region: string | undefined;
  /** Secrets. */
  accessKeyId: string;
  secretAccessKey: string;
  /** Prefix of the names of objects. */
  prefix: string;
}

/** S3's minimum bytes of a part, except the last. Each upload buffers one part. */
const partBytes = 5 * 1024 * 1024;

export class S3Objects implements ObjectStore {
  readonly #client: S3Client;
  readonly #prefix: string;

  constructor({ prefix, endpoint, region, ...settings }: S3Settings) {
    this.#client = new S3Client({ ...settings, ...(endpoint && { endpoint }), ...(region && { region }) });
    this.#prefix = prefix;
  }

  create(name: string): Promise<ObjectWriter> {
    const sink = this.#client.file(this.#prefix + name).writer({ partSize: partBytes, queueSize: 1, retry: 3 });
    const storedBytes = async () => (await this.#client.stat(this.#prefix + name)).size;
    return Promise.resolve(new S3Writer(sink, storedBytes, () => this.delete(name)));
  }

  async *read(name: string, { start, end }: ByteRange): AsyncGenerator<Uint8Array> {
    let remaining = end - start;
    if (remaining <= 0) return;
    try {
      const pieces = this.#client
        .file(this.#prefix + name)
        .slice(start, end)
        .stream();
      for await (const piece of pieces as unknown as AsyncIterable<Uint8Array>) {
        // The answer is not the file: a proxy sent a page, or the store does not support range requests.
        if (piece.byteLength > remaining) throw otherLength();
        remaining -= piece.byteLength;
        yield piece;
      }
      if (remaining > 0) throw otherLength();
    } catch (error) {
      throw faultOf(error);
    }
  }

  /** Stores an object as a whole, in place of one with this name. */
  async put(name: string, bytes: Uint8Array, type: string): Promise<void> {
    try {
      await this.#client.write(this.#prefix + name, bytes, { type, retry: 0 });
      if ((await this.#client.stat(this.#prefix + name)).size !== bytes.byteLength) throw otherLength();
    } catch (error) {
      throw unusable(error);
    }
  }

  async delete(name: string): Promise<void> {
    try {
      await this.#client.delete(this.#prefix + name);
    } catch (error) {
      if (!isMissing(error)) throw faultOf(error);
    }
  }
}

class S3Writer implements ObjectWriter {
  readonly #sink: Bun.NetworkSink;
  readonly #storedBytes: () => Promise<number>;
  readonly #undo: () => Promise<void>;
  #bytes = 0;
  #unflushed = 0;

  /** `storedBytes` asks the store for the object's length; `undo` deletes it. */
  constructor(sink: Bun.NetworkSink, storedBytes: () => Promise<number>, undo: () => Promise<void>) {
    this.#sink = sink;
    this.#storedBytes = storedBytes;
    this.#undo = undo;
  }

  async write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#sink.write(bytes);
      this.#bytes += bytes.byteLength;
      this.#unflushed += bytes.byteLength;
      if (this.#unflushed < partBytes) return;
      this.#unflushed = 0;
      await this.#sink.flush();
    } catch (error) {
      throw unusable(error);
    }
  }

  async finish(): Promise<void> {
    try {
      await this.#sink.end();
      // A success status proves nothing: a proxy may have sent it, or the body may contain an error.
      if ((await this.#storedBytes()) !== this.#bytes) throw otherLength();
    } catch (error) {
      // A store that lost an accepted object is at fault; the client's request was valid.
      throw unusable(error);
    }
  }

  async abandon(): Promise<void> {
    try {
      await this.#sink.end(new Error("abandoned"));
      await this.#undo();
    } catch {
      // The upload has stored parts, but no object. The bucket's rule for incomplete uploads deletes the parts.
    }
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "NoSuchKey";
}

function otherLength(): Error {
  return Object.assign(new Error("The object has another length."), { code: "other_length" });
}

function faultOf(error: unknown): GatewayError {
  if (isMissing(error)) return new GatewayError("not_found", "The content of this file is not in the object store.");
  return unusable(error);
}

function unusable(error: unknown): GatewayError {
  const { code } = (error ?? {}) as { code?: unknown };
  return new GatewayError("service_unavailable", "The store of files cannot be used at the moment. Retry in 5 s.", {
    detail: `files: s3 ${String(code ?? "unknown")}`,
    retryAfterSeconds: 5,
    cause: error,
  });
}
