// Ends a Messages stream that a quota stopped. Open blocks are closed, as if the answer had reached the limit
// `max_tokens`.
import type { StopMark } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import type { StreamObserver } from "../translation/passed-stream.ts";
import { namedEvent } from "./block-output.ts";
import { type Json, numberOf } from "./json.ts";
import { deltaUsage } from "./usage.ts";

export class ObservedMessage implements StreamObserver {
  /** Indices of the blocks that have begun but not ended. */
  readonly #open = new Set<number>();

  see({ type, index }: Json): void {
    const blockIndex = numberOf(index);
    if (blockIndex === undefined) return;
    if (type === "content_block_start" || type === "content_block_delta") this.#open.add(blockIndex);
    else if (type === "content_block_stop") this.#open.delete(blockIndex);
  }

  stopped(_: unknown, usage: ReplyUsage, mark: StopMark): string {
    const closing = [...this.#open].map((index) => namedEvent({ type: "content_block_stop", index }));
    const delta = { stop_reason: "max_tokens", stop_sequence: null, stop_details: null, container: null };
    const deltaEvent = { type: "message_delta", delta, usage: deltaUsage(usage, 0), headrace: mark };
    return closing.join("") + namedEvent(deltaEvent) + namedEvent({ type: "message_stop" });
  }
}
