// A connection that the primary process switched to another protocol: forwards bytes between the client and the primary
// process, until either ends.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { ByteChannelListener, PausableChannel } from "../http1/byte-channel.ts";
import type { PassedResponse } from "../http1/client/client-contract.ts";

/** `channel` leads to the client. `response` is the primary process's, with status 101. */
export function spliced(channel: PausableChannel, response: PassedResponse): void {
  const spliced = new SplicedConnection(channel, response.body);
  response.upload(spliced);
  response.body.flow(spliced.toClient);
}

/** The source of the client's bytes. */
class SplicedConnection implements BodySource, ByteChannelListener {
  readonly toClient: BodySink;
  readonly #channel: PausableChannel;
  readonly #primary: BodySource;
  #toPrimary: BodySink | undefined;

  constructor(channel: PausableChannel, primary: BodySource) {
    this.#channel = channel;
    this.#primary = primary;
    this.toClient = {
      data: (bytes) => this.#write(bytes.view),
      end: () => channel.end(),
      fail: () => channel.end(),
    };
  }

  flow(sink: BodySink): void {
    this.#toPrimary = sink;
    this.#channel.listen(this);
  }

  pause(): void {
    this.#channel.pause();
  }

  resume(): void {
    this.#channel.resume();
  }

  cancel(): void {
    this.#channel.end();
  }

  data(bytes: Buffer): void {
    this.#toPrimary?.data(ByteSpan.of(bytes));
  }

  drained(): void {
    this.#primary.resume();
  }

  closed(): void {
    this.#toPrimary?.end();
  }

  #write(bytes: Buffer): void {
    this.#channel.write(bytes);
    if (this.#channel.unsentBytes > 0) this.#primary.pause();
  }
}
