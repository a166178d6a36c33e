// Sends the bytes of a request that arrive after its headers: the body, or the client's bytes after a protocol switch.
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";

/** The methods of the connection that an upload uses. */
export interface UploadConnection {
  /**
   * Sends bytes. Returns whether all were written. If not, the rest is buffered, and `drained` is called once it was
   * sent.
   */
  sendMore(bytes: Buffer): boolean;
  /** Called when the source has ended. Its last bytes may not be sent yet. */
  sentAll(): void;
  /** Called if the source fails before it ends. */
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

  /** Cancels the source, because its bytes are no longer needed. */
  cancel(): void {
    this.#source.cancel();
  }
}
