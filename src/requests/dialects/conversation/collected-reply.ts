// Collects an answer from its pieces. Used for whole answers, for records, and in tests.
import type { AnswerPart, ReasoningProof } from "./conversation.ts";
import type { ReplyCall, ReplyEnd, ReplySink, ReplyUsage } from "./reply.ts";

interface OpenText {
  readonly type: "text" | "refusal";
  readonly pieces: string[];
}

interface OpenReasoning {
  readonly type: "reasoning";
  readonly pieces: string[];
  readonly isSummary: boolean;
  proof?: ReasoningProof;
}

interface OpenCall {
  readonly type: "call";
  readonly pieces: string[];
  readonly call: ReplyCall;
}

type Open = OpenText | OpenReasoning | OpenCall;

/** Collects pieces without a limit. A caller that needs a limit must check `size`. */
export class CollectedReply implements ReplySink {
  /** Number of characters that were collected. */
  size = 0;
  /** The end of the answer. Undefined until it has arrived. */
  ended: ReplyEnd | undefined;
  /** The latest value of each usage figure. */
  used: ReplyUsage = {};
  /** Log-probabilities of all texts, in order and in the form of chat completions. */
  readonly logprobs: unknown[] = [];
  readonly #parts: Open[] = [];
  readonly #calls = new Map<number, OpenCall>();
  /** The part that is still open. The next piece of the same kind continues it. */
  #last: Open | undefined;

  get parts(): AnswerPart[] {
    return this.#parts.map(partOf);
  }

  block(): void {
    this.#last = undefined;
  }

  text(text: string, logprobs?: readonly unknown[]): void {
    if (text !== "") this.#addText("text", text);
    if (logprobs) for (const entry of logprobs) this.logprobs.push(entry);
  }

  refusal(text: string): void {
    if (text !== "") this.#addText("refusal", text);
  }

  reasoning(text: string, isSummary: boolean): void {
    if (text === "") return;
    this.size += text.length;
    const last = this.#last;
    if (last?.type === "reasoning" && last.isSummary === isSummary) last.pieces.push(text);
    else this.#begin({ type: "reasoning", pieces: [text], isSummary });
  }

  proof(proof: ReasoningProof): void {
    this.size += proof.data.length;
    if (this.#last?.type === "reasoning") this.#last.proof = proof;
    else this.#begin({ type: "reasoning", pieces: [], isSummary: false, proof });
    this.#last = undefined;
  }

  call(index: number, call: ReplyCall): void {
    const begun: OpenCall = { type: "call", pieces: [], call };
    this.size += call.name.length + call.callId.length;
    this.#calls.set(index, begun);
    this.#begin(begun);
  }

  arguments(index: number, text: string): void {
    this.size += text.length;
    this.#calls.get(index)?.pieces.push(text);
  }

  usage(usage: ReplyUsage): void {
    const reported = Object.entries(usage).filter(([, value]) => value !== undefined);
    this.used = { ...this.used, ...Object.fromEntries(reported) };
  }

  end(end: ReplyEnd): void {
    this.ended = end;
  }

  #addText(type: OpenText["type"], text: string): void {
    this.size += text.length;
    if (this.#last?.type === type) this.#last.pieces.push(text);
    else this.#begin({ type, pieces: [text] });
  }

  #begin(part: Open): void {
    this.#parts.push(part);
    this.#last = part;
  }
}

function partOf(open: Open): AnswerPart {
  const text = open.pieces.join("");
  if (open.type === "call") return { type: "call", ...open.call, input: text };
  if (open.type !== "reasoning") return { type: open.type, text };
  const { isSummary, proof } = open;
  return { type: "reasoning", text, isSummary, ...(proof ? { proof } : {}) };
}
