// Stores the recent events of a session for a while, so that a client can resume after its connection broke.
import type { EventStore } from "@modelcontextprotocol/server";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Clock } from "../../base/clock.ts";

/** Maximum events and bytes per session. The oldest events are dropped; an event above the limit is not stored. */
const [maxEvents, maxBytes] = [256, 512 * 1024];
const keptMs = 2 * 60_000;

type Message = Parameters<EventStore["storeEvent"]>[1];

interface Kept {
  readonly id: string;
  readonly stream: string;
  readonly text: string;
  readonly atMs: number;
}

export class KeptEvents implements EventStore {
  readonly #memoryAccount: MemoryAccount;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #kept: Kept[] = [];
  #bytes = 0;
  #count = 0;
  #isOver = false;

  constructor(memoryAccount: MemoryAccount, clock: Pick<Clock, "monotonicMs">) {
    this.#memoryAccount = memoryAccount;
    this.#clock = clock;
  }

  async storeEvent(stream: string, message: Message): Promise<string> {
    this.expire();
    const id = String(++this.#count);
    const text = JSON.stringify(message);
    // After the session has ended, nothing is stored, because nothing would release it.
    if (text.length > maxBytes || this.#isOver) return id;
    while (this.#kept.length >= maxEvents || this.#bytes + text.length > maxBytes) this.#drop();
    // If the key's memory is used up, events are sent but not stored.
    if (this.#memoryAccount.take("unsent", text.length)) return id;
    this.#bytes += text.length;
    this.#kept.push({ id, stream, text, atMs: this.#clock.monotonicMs() });
    return id;
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    this.expire();
    return this.#kept.find((one) => one.id === id)?.stream;
  }

  async replayEventsAfter(
    id: string,
    { send }: { send: (id: string, message: Message) => Promise<void> },
  ): Promise<string> {
    const at = this.#kept.findIndex((one) => one.id === id);
    const stream = this.#kept[at]?.stream ?? "";
    for (const one of this.#kept.slice(at + 1)) {
      // Skip priming events, which contain no message.
      if (one.stream === stream && one.text !== "{}") await send(one.id, JSON.parse(one.text) as Message);
    }
    return stream;
  }

  /** Drops events that are too old. */
  expire(): void {
    const before = this.#clock.monotonicMs() - keptMs;
    while ((this.#kept[0]?.atMs ?? before) < before) this.#drop();
  }

  /** Drops all events and stores no more. */
  end(): void {
    this.#isOver = true;
    while (this.#kept.length > 0) this.#drop();
  }

  #drop(): void {
    const length = this.#kept.shift()?.text.length ?? 0;
    this.#bytes -= length;
    this.#memoryAccount.release("unsent", length);
  }
}
