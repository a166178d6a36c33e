// Sends the part of a request that arrives after its head: its body, or the client's bytes after a protocol switch.
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";

/** The members of its connection that an upload needs. */
export interface UploadConnection {
  /**
   * Sends bytes and returns whether the kernel took all of them. The rest is kept, and `drained` is called once it is
   * sent.
   */
  sendMore(bytes: Buffer): boolean;
  /** Called when no more bytes follow. */
  sentAll(): void;
  /** Called if the rest will not arrive. */
  sentInPart(error: unknown): void;
}

export class RequestUpload implements BodySink {
  ended = false;
  readonly #source: BodySource;
  readonly #connection: UploadConnection;

  constructor(source: BodySource, connection: UploadConnection) {
    this.#source = source;
    this.#connection = connection;
  }

  begin(): void {
    this.#source.flow(this);
  }

  data(bytes: ByteSpan): void {
    if (!this.#connection.sendMore(bytes.view)) this.#source.pause();
  }

  drained(): void {
    this.#source.resume();
  }

  end(): void {
    this.ended = true;
    this.#connection.sentAll();
  }

  fail(error: unknown): void {
    this.#connection.sentInPart(error);
  }

  /** Called when the rest is no longer needed. */
  cancel(): void {
    this.#source.cancel();
  }
}
