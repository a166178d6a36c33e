// What a request sends after its head as it arrives: its body, or all that its client says after a protocol switch.
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";

/** The members of its connection that an upload needs. */
export interface UploadConnection {
  /** Returns whether the kernel took all bytes. The rest is kept, and `drained` is called once it is gone. */
  sendMore(bytes: Buffer): boolean;
  /** No more bytes follow. */
  sentAll(): void;
  /** The rest will not arrive. */
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
