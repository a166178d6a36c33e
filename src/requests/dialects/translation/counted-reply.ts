// Counts the delivered part of a reply, and passes the reply on to a writer. Also remembers the model server's usage
// and finish reason.
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { CutPart, SaidListener, StreamObservation } from "../answer.ts";
import type { ReasoningProof } from "../conversation/conversation.ts";
import type { ReplyCall, ReplyEnd, ReplySink, ReplyUsage } from "../conversation/reply.ts";
import { partsOf } from "../reported-parts.ts";
import { lastPart } from "../stream-usage.ts";

export class CountedReply implements ReplySink, StreamObservation {
  deliveredBytes = 0;
  deliveredPieces = 0;
  context: number | undefined;
  ended: ReplyEnd | undefined;
  /** The reported usage, with the latest value of each figure. */
  reportedUsage: ReplyUsage = {};
  cut: CutPart[] | undefined;
  readonly countedPrompts: SaidListener["countedPrompts"] | undefined;
  readonly #to: ReplySink | undefined;
  readonly #said: SaidListener | undefined;

  /** `to` receives every piece of the reply. `said` receives the text. */
  constructor(to?: ReplySink, said?: SaidListener) {
    this.#to = to;
    this.#said = said;
    this.countedPrompts = said?.countedPrompts;
  }

  /**
   * Starts to read from a server that continues the answer. The usage of this server replaces that of the previous one.
   */
  goOn(): void {
    const part = lastPart(this);
    this.cut ??= [];
    this.cut.push(part);
    this.reportedUsage = {};
  }

  /**
   * Returns the reported usage after the answer has ended. Before, returns undefined, because some servers begin with
   * figures of zero. There is an exception: if a server reported cached tokens, its figures also count if the stream is
   * cut. For a failed answer, the figures are final if the server says so.
   */
  get reported(): TokenUsage | undefined {
    return reportedOf(this.reportedUsage, this.ended !== undefined || this.reportedUsage.isFinal === true);
  }

  get reportedPrompt(): StreamObservation["reportedPrompt"] {
    const { promptTokens, completionTokens: _, reasoningTokens: __, ...reported } = this.reportedUsage;
    return promptTokens === undefined ? undefined : { promptTokens, parts: partsOf(reported) };
  }

  block(): void {
    this.#to?.block();
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    this.#count(text);
    this.#said?.text(text);
    if (logprobs) this.#said?.other();
    this.#to?.text(text, logprobs);
  }

  refusal(text: string): void {
    this.#count(text);
    this.#said?.other();
    this.#to?.refusal(text);
  }

  reasoning(text: string, isSummary: boolean): void {
    this.#count(text);
    this.#said?.thought();
    this.#to?.reasoning(text, isSummary);
  }

  proof(proof: ReasoningProof): void {
    this.#said?.thought();
    this.#to?.proof(proof);
  }

  call(index: number, call: ReplyCall): void {
    this.#count(call.name);
    this.#said?.other();
    this.#to?.call(index, call);
  }

  arguments(index: number, text: string): void {
    this.#count(text);
    this.#to?.arguments(index, text);
  }

  usage(usage: ReplyUsage): void {
    this.reportedUsage = merged(this.reportedUsage, usage);
    this.#to?.usage(usage);
  }

  end(end: ReplyEnd): void {
    this.ended = end;
    this.#to?.end(this.cut ? { ...end, mark: { ...end.mark, continued: this.cut.length } } : end);
  }

  #count(text: string): void {
    if (text === "") return;
    this.deliveredBytes += Buffer.byteLength(text);
    this.deliveredPieces++;
  }
}

export function reportedOf(reported: ReplyUsage, hasEnded: boolean): TokenUsage | undefined {
  const { promptTokens, completionTokens = hasEnded ? undefined : 0, cachedTokens, cacheWriteTokens } = reported;
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  if (!hasEnded && !cachedTokens && !cacheWriteTokens) return undefined;
  return { promptTokens, completionTokens, estimated: false, parts: partsOf(reported) };
}

/** Merges two reports of usage. If the second report does not contain a figure, it keeps its value. */
function merged(before: ReplyUsage, now: ReplyUsage): ReplyUsage {
  return {
    promptTokens: now.promptTokens ?? before.promptTokens,
    cachedTokens: now.cachedTokens ?? before.cachedTokens,
    cacheWriteTokens: now.cacheWriteTokens ?? before.cacheWriteTokens,
    completionTokens: now.completionTokens ?? before.completionTokens,
    reasoningTokens: now.reasoningTokens ?? before.reasoningTokens,
    details: now.details && before.details ? { ...before.details, ...now.details } : (now.details ?? before.details),
    isFinal: now.isFinal ?? before.isFinal,
  };
}

/** Returns the counted figures, together with those reported parts that are consistent with them. */
export function usageOf(counted: TokenUsage, reported: ReplyUsage): ReplyUsage {
  const { promptTokens, completionTokens } = counted;
  const within = (part: number | undefined, whole: number) => (part === undefined ? undefined : Math.min(part, whole));
  const cachedTokens = within(reported.cachedTokens, promptTokens);
  return {
    promptTokens,
    completionTokens,
    cachedTokens,
    cacheWriteTokens: within(reported.cacheWriteTokens, promptTokens - (cachedTokens ?? 0)),
    reasoningTokens: within(reported.reasoningTokens, completionTokens),
    details: reported.details,
  };
}
