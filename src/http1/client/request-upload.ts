// What a request sends behind its head as it comes: its body, or, once its protocol was switched, all that its client says.
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";

/** The members of its connection that an upload needs. */
export interface UploadConnection {
  /** Whether the kernel took all of it; the rest is kept, and `drained` is called when it is gone. */
  sendMore(bytes: Buffer): boolean;
  /** Nothing follows what was sent. */
  sentAll(): void;
  /** The rest will not come. */
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

  /** Nobody takes the rest. */
  cancel(): void {
    this.#source.cancel();
  }
}
