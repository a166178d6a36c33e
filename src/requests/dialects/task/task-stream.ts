// The event stream of a task. The client gets each event as the server wrote it, and usage is counted at the same time.
import { type ByteSpan, withoutMark } from "../../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { AnswerStream, AskedRequest, Serving } from "../answer.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { endMark, isEndMark } from "../end-mark.ts";
import { reportedFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { estimateTokens } from "../prompt-tokens.ts";
import { parseObject } from "../read-answer.ts";
import type { Json, Task, TaskEvents } from "./task.ts";
import { requireAnswer } from "./task-answer.ts";
import { usageOfTask } from "./task-usage.ts";

const typePattern = /^[\w.-]{1,64}$/;
/**
 * Maximum length in characters of a transcript that arrives in chunks. It is limited because the last event repeats all
 * characters.
 */
const maxChunksLength = 4_194_304;

export class TaskStream implements AnswerStream {
  deliveredBytes = 0;
  deliveredPieces = 0;
  context: number | undefined;
  readonly #task: Task;
  readonly #events: TaskEvents;
  readonly #request: AskedRequest;
  #serving: Serving | undefined;
  /** The sum of the usage in all final events. */
  #reported: ReplyUsage | undefined;
  /**
   * Number of delivered text bytes in UTF-8. Bytes of sound and images do not count, because they do not show how many
   * tokens there are.
   */
  #textBytes = 0;
  /** Number of complete items. The second member tells whether a part of a further item has arrived. */
  #complete = 0;
  #begun = false;
  #hasEndMark = false;
  /**
   * The text and the usage of an answer that arrives as chunks of a chat completion. Undefined if no such chunk has
   * arrived.
   */
  #chunked: { text: string; usage: Json | undefined } | undefined;
  /** Number of items that the request asks for. */
  readonly #expected: number;

  /** Throws if the task cannot be streamed. */
  constructor(task: Task, request: AskedRequest) {
    if (!task.events) throw new GatewayError("internal_error", `There is no stream of ${task.endpoint}.`);
    this.#task = task;
    this.#events = task.events;
    this.#request = request;
    const { n } = request.body;
    this.#expected = typeof n === "number" && task.events.units ? n : 1;
  }

  get reported(): TokenUsage | undefined {
    return this.#reported && this.usageSoFar();
  }

  get finishSeen(): boolean {
    return this.#complete > 0;
  }

  get isOpen(): boolean {
    return this.#complete < this.#expected;
  }

  get isOver(): boolean {
    return !this.isOpen;
  }

  usageSoFar(): TokenUsage {
    const { body } = this.#request;
    const asked = this.#task.units(body);
    const units = asked && (this.#events.units?.(asked, this.#complete, this.#begun) ?? asked);
    return usageOfTask(this.#reported, units, this.#request, {
      bytes: this.#textBytes,
      tokens: estimateTokens(this.#textBytes),
    });
  }

  servedBy(serving: Serving): void {
    this.#serving = serving;
    this.context = serving.model.context;
  }

  takeInPlace(): undefined {
    return undefined;
  }

  takeAlike(): string {
    return "";
  }

  isEnd(data: string): boolean {
    // Some servers end the stream with the end mark of the chat completions format.
    if (!isEndMark(data)) return false;
    this.#hasEndMark = true;
    // If the stream consists of chunks, the end mark becomes the last event.
    return !this.#chunked || this.isOver;
  }

  translate(received: string): string {
    const { ofChunks } = this.#events;
    if (ofChunks && this.#chunked && isEndMark(received)) {
      return this.#written(ofChunks.done(this.#chunked.text, this.#chunked.usage));
    }
    const text = decodeByteText(received);
    const event = parseObject(text);
    if (event["error"] !== undefined && event["error"] !== null) {
      throw reportedFault(
        text,
        this.#serving?.deployment.engine,
        "The model server failed in the middle of the answer.",
      );
    }
    const { type, choices } = event;
    if (ofChunks && type === undefined && Array.isArray(choices)) {
      const piece = this.#takeChunk(event, choices);
      return piece === "" ? "" : this.#written(ofChunks.delta(piece));
    }
    this.#serving?.trace?.chunk(event);
    if (typeof type !== "string" || !typePattern.test(type)) throw malformed("an event without a type");
    this.#observe(type, event);
    // If JSON has several lines, it is written as one line, because some clients read line by line.
    const data = received.includes("\n") ? encodeByteText(JSON.stringify(event)) : received;
    return `event: ${type}\ndata: ${data}\n\n`;
  }

  #written(event: Json): string {
    return this.translate(encodeByteText(JSON.stringify(event)));
  }

  /** Returns the text of a chunk. */
  #takeChunk({ usage }: Json, choices: readonly unknown[]): string {
    const { delta } = (choices[0] ?? {}) as { delta?: { content?: unknown } | null };
    const piece = typeof delta?.content === "string" ? delta.content : "";
    const { text, usage: before } = this.#chunked ?? { text: "", usage: undefined };
    if (text.length + piece.length > maxChunksLength) throw malformed(`more than ${maxChunksLength} characters`);
    this.#chunked = { text: text + piece, usage: isObject(usage) ? usage : before };
    return piece;
  }

  #observe(type: string, event: Json): void {
    const { last, delivered } = this.#events;
    const piece = event[delivered[type] ?? ""];
    if (typeof piece === "string" && piece !== "") {
      const bytes = Buffer.byteLength(piece);
      this.deliveredBytes += bytes;
      this.deliveredPieces++;
      if (delivered[type] === "delta") this.#textBytes += bytes;
    }
    if (type !== last) {
      this.#begun ||= piece !== undefined;
      return;
    }
    this.#complete++;
    this.#begun = false;
    const reported = this.#task.usage(event);
    if (reported) this.#reported = this.#reported ? added(this.#reported, reported) : reported;
  }

  whole(bytes: ByteSpan): string {
    const serving = this.#serving as Serving;
    const answer = requireAnswer(this.#task, withoutMark(bytes).text, serving);
    const events = this.#events.ofWhole(answer).map((event) => this.#written(event));
    // The usage of the whole answer is used only if the events reported none.
    this.#reported ??= this.#task.usage(answer);
    return events.join("");
  }

  ending(): string {
    return this.#hasEndMark ? `data: ${endMark}\n\n` : "";
  }

  stopped(): string {
    return this.ending();
  }

  errorEvent(rendered: string): string {
    return `data: ${encodeByteText(rendered)}\n\n`;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

/** Adds up usage, because each image reports only its own. */
function added(one: ReplyUsage, other: ReplyUsage): ReplyUsage {
  const sum = (a: number | undefined, b: number | undefined) =>
    a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
  return {
    promptTokens: sum(one.promptTokens, other.promptTokens),
    completionTokens: sum(one.completionTokens, other.completionTokens),
    cachedTokens: sum(one.cachedTokens, other.cachedTokens),
    details: {
      ...other.details,
      inputImageTokens: sum(one.details?.inputImageTokens, other.details?.inputImageTokens),
      outputImageTokens: sum(one.details?.outputImageTokens, other.details?.outputImageTokens),
    },
  };
}
