// Files in an object store that speaks S3's API, by Bun's own client.
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
  /** What the names of objects begin with. */
  prefix: string;
}

/** The least that S3 takes for a part but the last; so much is held of each file on its way. */
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
    return Promise.resolve(new S3Writer(sink, () => this.delete(name)));
  }

  async *read(name: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    if (range && range.end <= range.start) return;
    const file = this.#client.file(this.#prefix + name);
    try {
      yield* (range ? file.slice(range.start, range.end) : file).stream() as unknown as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw faultOf(error);
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
  readonly #undo: () => Promise<void>;
  #unflushed = 0;

  constructor(sink: Bun.NetworkSink, undo: () => Promise<void>) {
    this.#sink = sink;
    this.#undo = undo;
  }

  async write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#sink.write(bytes);
      this.#unflushed += bytes.byteLength;
      if (this.#unflushed < partBytes) return;
      this.#unflushed = 0;
      await this.#sink.flush();
    } catch (error) {
      throw faultOf(error);
    }
  }

  async finish(): Promise<void> {
    try {
      await this.#sink.end();
    } catch (error) {
      throw faultOf(error);
    }
  }

  async abandon(): Promise<void> {
    try {
      await this.#sink.end(new Error("abandoned"));
      await this.#undo();
    } catch {
      // What stays of it is no object, and goes by a rule of the bucket for uploads that were never completed.
    }
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "NoSuchKey";
}

function faultOf(error: unknown): GatewayError {
  if (isMissing(error)) return new GatewayError("not_found", "The content of this file is not in the object store.");
  const { code } = (error ?? {}) as { code?: unknown };
  return new GatewayError("service_unavailable", "The store of files cannot be used at the moment. Retry in 5 s.", {
    detail: `files: s3 ${String(code ?? "unknown")}`,
    retryAfterSeconds: 5,
    cause: error,
  });
}
