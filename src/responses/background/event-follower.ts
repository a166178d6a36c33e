// Sends a client the events of a response in the background: those that were, and those that come.

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

/** How often the store is asked for more of a response that another replica works on. */
const pollMs = 500;
/** A client that takes nothing for so long is cut off, as it is from any stream. */
const stalledMs = 60_000;

export interface FollowOptions {
  id: string;
  /** The number of the last event that the client has; -1: none. */
  after: number;
  client: ClientStream;
  /** Cancelled when the client leaves. */
  left: Cancellation;
  background: Pick<BackgroundStore, "events">;
  looks: Pick<SharedPolls, "look">;
  /** The response, where this process works on it. */
  running(): Pick<BackgroundRun, "listen" | "leave" | "ended"> | undefined;
  stopping: Stopping;
  heartbeatMs: number;
}

/** Until the response has ended, the client leaves, or the server stops: the client then asks for what comes later. */
export class EventFollower implements EventListener, CancelListener, Stoppable {
  setIndex = noIndex;
  readonly #options: FollowOptions;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  /** The number of the last event that it was sent. */
  #after: number;
  #isBehind = false;
  #isOver = false;
  /** Goes on from what is waited for. */
  #goOn: () => void = () => {};

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#after = options.after;
    this.#heartbeat = setInterval(() => {
      if (!this.#isBehind) this.#write(comment);
    }, options.heartbeatMs);
  }

  /** Never rejects. */
  async follow(): Promise<void> {
    const { client, left, stopping } = this.#options;
    client.onDrain = () => {
      this.#isBehind = false;
      this.#goOn();
    };
    left.onCancel(this);
    if (!this.#isOver) stopping.add(this);
    try {
      while (!this.#isOver) await this.#next();
    } catch {
      // Without an end, the client knows that there is more, and from where.
      if (!this.#isOver) client.abort();
    } finally {
      this.#close();
    }
  }

  event(number: number, data: string): void {
    if (this.#isOver || number <= this.#after) return;
    this.#after = number;
    this.#write(encodeByteText(asStreamed(data)));
    // What comes meanwhile is in the store once it can take more.
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
    // One that this process works on is ended as well, and that is told.
    if (!this.#options.running()) this.cutOff();
  }

  /** Ends the stream without the end of its response. */
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
    if (!run) await this.#look();
    else if (!run.listen(this, this.#after + 1)) await this.#catchUp(run.ended);
    else if (!this.#isBehind) await this.#wait();
  }

  /** What this process works on, and does not have itself any more. */
  async #catchUp(ended: Promise<void>): Promise<void> {
    const { id, background } = this.#options;
    const batches = await background.events(id, this.#after, pageSize);
    this.#send(batches);
    if (batches.length === 0) await Promise.race([ended, this.#wait(pollMs)]);
  }

  async #look(): Promise<void> {
    const { state, batches } = await this.#options.looks.look(this.#options.id, this.#after);
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

  /** Until something goes on, or so many milliseconds are over; where all is over already, not at all. */
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
    const { left, stopping, running } = this.#options;
    clearInterval(this.#heartbeat);
    running()?.leave(this);
    left.off(this);
    stopping.remove(this);
  }
}
