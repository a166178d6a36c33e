// Sends the events of a background response to a client: stored events first, then new ones.

import { encodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { CancelListener, Cancellation } from "../../base/cancellation.ts";
import { noIndex } from "../../base/indexed-set.ts";
import type { BackgroundStore, EventBatch } from "../../domain/models/stored-response.ts";
import type { Stoppable, Stopping } from "../../inference/stopping.ts";
import { comment } from "../../requests/dialects/keep-alive.ts";
import type { BackgroundRun, EventListener } from "./background-run.ts";
import { asStreamed } from "./run-events.ts";
import { pageSize, type SharedPolls } from "./shared-polls.ts";

/** Interval of the store polls for a response of another replica. */
const pollMs = 500;
/** Time after which a client that reads nothing is disconnected, as for any stream. */
const stalledMs = 60_000;

export interface EventSubscriberOptions {
  id: string;
  /** Number of the last event that the client has; -1: none. */
  after: number;
  client: ClientStream;
  /** Cancelled when the client disconnects. */
  clientGone: Cancellation;
  background: Pick<BackgroundStore, "events">;
  polls: Pick<SharedPolls, "poll">;
  /** Returns the run of the response if it is in this process. */
  running(): Pick<BackgroundRun, "listen" | "leave" | "ended"> | undefined;
  stopping: Stopping;
  heartbeatMs: number;
}

/**
 * Sends events until the response ends, the client disconnects or the server stops. The client can later ask for the
 * remaining events.
 */
export class EventSubscriber implements EventListener, CancelListener, Stoppable {
  setIndex = noIndex;
  readonly #options: EventSubscriberOptions;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  /** Number of the last event that was sent. */
  #after: number;
  #isBehind = false;
  #isOver = false;
  /** Ends the current wait. */
  #goOn: () => void = () => {};

  constructor(options: EventSubscriberOptions) {
    this.#options = options;
    this.#after = options.after;
    this.#heartbeat = setInterval(() => {
      if (!this.#isBehind) this.#write(comment);
    }, options.heartbeatMs);
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { client, clientGone, stopping } = this.#options;
    client.onDrain = () => {
      this.#isBehind = false;
      this.#goOn();
    };
    clientGone.onCancel(this);
    if (!this.#isOver) stopping.add(this);
    try {
      while (!this.#isOver) await this.#next();
    } catch {
      // Abort, because a stream without an end shows the client that it can continue from its last event.
      if (!this.#isOver) client.abort();
    } finally {
      this.#close();
    }
  }

  event(number: number, data: string): void {
    if (this.#isOver || number <= this.#after) return;
    this.#after = number;
    this.#write(encodeByteText(asStreamed(data)));
    // A slow client later reads from the store the events that it missed.
    if (this.#isBehind) this.#options.running()?.leave(this);
    if (this.#isBehind) this.#goOn();
  }

  ended(): void {
    this.#goOn();
  }

  cancelled(): void {
    this.#isOver = true;
    this.#goOn();
  }

  stop(): void {
    // A response of this process ends too when the server stops, and its end is still sent.
    if (!this.#options.running()) this.cutOff();
  }

  /** Closes the client's stream before the response has ended. */
  cutOff(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.client.abort();
    this.#goOn();
  }

  async #next(): Promise<void> {
    if (this.#isBehind) {
      await this.#caughtUp();
      return;
    }
    const run = this.#options.running();
    if (!run) await this.#poll();
    else if (!run.listen(this, this.#after + 1)) await this.#catchUp(run.ended);
    else if (!this.#isBehind) await this.#wait();
  }

  /** Reads stored events of a response of this process that are no longer in memory. */
  async #catchUp(ended: Promise<void>): Promise<void> {
    const { id, background } = this.#options;
    const batches = await background.events(id, this.#after, pageSize);
    this.#send(batches);
    if (batches.length === 0) await Promise.race([ended, this.#wait(pollMs)]);
  }

  async #poll(): Promise<void> {
    const { state, batches } = await this.#options.polls.poll(this.#options.id, this.#after);
    this.#send(batches);
    if (batches.length > 0) return;
    if (state?.status === "queued" || state?.status === "in_progress") await this.#wait(pollMs);
    else this.#end();
  }

  #send(batches: readonly EventBatch[]): void {
    for (const { first, events } of batches) {
      for (const [index, event] of events.entries()) this.event(first + index, event);
    }
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.client.end();
  }

  async #caughtUp(): Promise<void> {
    await this.#wait(stalledMs);
    if (!this.#isBehind || this.#isOver) return;
    this.#isOver = true;
    this.#options.client.abort();
  }

  #write(text: string): void {
    if (this.#isOver) return;
    if (!this.#options.client.write(text)) this.#isBehind = true;
  }

  /** Waits until `#goOn` is called, or for at most `maxMs`. Returns at once if the subscriber has ended. */
  #wait(maxMs?: number): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = maxMs === undefined ? undefined : setTimeout(resolve, maxMs);
      this.#goOn = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #close(): void {
    const { clientGone, stopping, running } = this.#options;
    clearInterval(this.#heartbeat);
    running()?.leave(this);
    clientGone.off(this);
    stopping.remove(this);
  }
}
