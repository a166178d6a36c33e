// Parses a reply while it is generated: separates the answer, the thinking and tool calls, and finds the end.
import { JsonCompleteness } from "../json/json-completeness.ts";
import { literal, oneOfTextsGrammar } from "../json/json-grammar.ts";
import type { CallSyntax, ReplySyntax } from "./reply-format.ts";
import { TextScanner } from "./text-scanner.ts";
import type { TextPiece } from "./token-text.ts";

export type ReplyEvent =
  | { kind: "text"; text: string }
  | { kind: "reasoning"; text: string }
  | { kind: "call"; index: number; id: string; name: string }
  | { kind: "arguments"; index: number; text: string };

export interface CallableTool {
  name: string;
  /** Grammar of the tool's arguments. */
  grammar: string;
}

export interface ReplyOptions<State> {
  syntax: ReplySyntax;
  /** The client's stop texts. They end the answer and are not delivered. */
  stops: readonly string[];
  /** True if the prompt ends within the thinking. */
  startsInReasoning: boolean;
  /**
   * True if the prompt ends with the beginning of the answer. Then nothing is removed from the start of the
   * generated text.
   */
  continuesText: boolean;
  /** Grammar of the answer, if it is restricted. */
  answerGrammar: string | undefined;
  tools: readonly CallableTool[];
  /** True if the prompt ends with the beginning of a tool call, so that the model must complete it. */
  startsInCall: boolean;
  parallelCalls: boolean;
  /** Starts a grammar. Called for each part of the reply that has a grammar. */
  startGrammar: (grammar: string) => State;
}

type Mode = "content" | "reasoning" | "name" | "arguments" | "after-call";

/** Parses one reply. `State` is the state of a grammar, which advances with each token. */
export class ReplyReader<State> {
  readonly #options: ReplyOptions<State>;
  readonly #calls: CallSyntax | undefined;
  readonly #scanner = new TextScanner();
  #mode: Mode = "content";
  #grammar: State | undefined;
  #events: ReplyEvent[] = [];
  #ended = false;
  #injection = "";
  /**
   * The beginning of the answer, held back until it is known whether to remove it. Undefined once the answer has
   * begun.
   */
  #start: string | undefined = "";
  #trimsStart = false;
  #reasoningBegun = false;
  #callCount = 0;
  #candidates: { name: string; text: string }[] = [];
  #callText = "";
  #arguments = new JsonCompleteness();

  constructor(options: ReplyOptions<State>) {
    this.#options = options;
    if (options.continuesText) this.#start = undefined;
    this.#calls = options.tools.length > 0 ? options.syntax.calls : undefined;
    if (options.startsInCall && this.#calls !== undefined) this.#enterName("", "");
    else this.#enter(options.startsInReasoning ? "reasoning" : "content", options.syntax.contentOpenings.length === 0);
  }

  /** The grammar that restricts the next token. Read it before each token. */
  get grammar(): State | undefined {
    return this.#grammar;
  }

  /** True if a stop text or the model's syntax has ended the reply. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * True if the reader may influence the next token: by a grammar, by inserted text, or by a client's stop text,
   * which ends generation. The model's own end markers are ignored here, because most are tokens that need no
   * reader.
   */
  get steers(): boolean {
    const { stops, answerGrammar } = this.#options;
    return stops.length > 0 || answerGrammar !== undefined || this.#calls !== undefined;
  }

  get calledTools(): boolean {
    return this.#callCount > 0;
  }

  /** Reads the next text of the reply, and returns the events in it. */
  read(pieces: readonly TextPiece[]): ReplyEvent[] {
    for (const { text, hidden } of pieces) {
      if (this.#ended) break;
      if (this.#mode === "name") this.#readName(text);
      else if (this.#mode === "arguments") this.#readArguments(text);
      else {
        this.#scanner.push(text, hidden);
        this.#scan();
      }
    }
    return this.#takeEvents();
  }

  /** Returns text to insert after the last token, which the model need not generate. Empty for none. */
  takeInjection(): string {
    const text = this.#injection;
    this.#injection = "";
    return text;
  }

  /** Call this at the end of the generation. Returns the events that were held back. */
  finish(): ReplyEvent[] {
    if (!this.#ended) {
      this.#deliver(this.#scanner.flush());
      this.#beginAnswer(true);
      this.#ended = true;
    }
    return this.#takeEvents();
  }

  #takeEvents(): ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #enter(mode: "content" | "reasoning" | "after-call", answers: boolean): void {
    const { syntax, stops, answerGrammar } = this.#options;
    this.#mode = mode;
    const announcements = this.#openings(mode)?.keys() ?? [];
    this.#grammar = undefined;
    if (mode === "reasoning") {
      this.#scanner.setMarkers([...syntax.reasoningClosings, ...syntax.endings, ...announcements]);
      return;
    }
    const labels = [...syntax.reasoningOpenings, ...syntax.contentOpenings, ...syntax.dropped, ...syntax.endings];
    const others = mode === "content" ? stops : [this.#calls?.betweenCalls ?? ""];
    this.#scanner.setMarkers([...labels, ...announcements, ...others]);
    if (mode === "content" && answers && answerGrammar !== undefined) {
      this.#grammar = this.#options.startGrammar(orCall(answerGrammar, this.#calls));
    }
  }

  #openings(mode: Mode): ReadonlyMap<string, string> | undefined {
    return mode === "after-call" ? this.#calls?.nextOpenings : this.#calls?.openings;
  }

  #scan(): void {
    while (!this.#ended && this.#mode !== "name" && this.#mode !== "arguments") {
      const { text, marker } = this.#scanner.next();
      this.#deliver(text);
      if (marker === undefined || this.#ended) return;
      this.#follow(marker);
    }
  }

  #follow(marker: string): void {
    const { syntax, stops } = this.#options;
    const rest = this.#openings(this.#mode)?.get(marker);
    if (syntax.endings.includes(marker) || (this.#mode === "content" && stops.includes(marker))) this.#end();
    else if (rest !== undefined) this.#enterName(marker, rest);
    else if (this.#mode === "reasoning") {
      this.#trimsStart = true;
      this.#enter("content", syntax.contentOpenings.length === 0);
    } else if (syntax.reasoningOpenings.includes(marker)) this.#enter("reasoning", false);
    else if (syntax.contentOpenings.includes(marker)) this.#enter("content", true);
  }

  #end(): void {
    this.#beginAnswer(true);
    this.#ended = true;
  }

  #deliver(text: string): void {
    if (text === "") return;
    if (this.#mode === "reasoning") this.#deliverReasoning(text);
    else if (this.#mode === "after-call") {
      // Only another call may follow a call, so any other text ends the reply.
      if (text.trim() !== "") this.#ended = true;
    } else if (this.#start !== undefined) {
      this.#start += text;
      this.#beginAnswer(false);
    } else this.#events.push({ kind: "text", text });
  }

  #deliverReasoning(text: string): void {
    const begun = this.#reasoningBegun ? text : text.trimStart();
    if (begun === "") return;
    this.#reasoningBegun = true;
    this.#events.push({ kind: "reasoning", text: begun });
  }

  /** Removes texts that the syntax ignores at the start of the answer, and white space after thinking. */
  #beginAnswer(final: boolean): void {
    if (this.#start === undefined) return;
    const start = this.#trimsStart ? this.#start.trimStart() : this.#start;
    if (start === "" && !final) return;
    const { ignoredStarts } = this.#options.syntax;
    if (!final && ignoredStarts.some((ignored) => ignored.length > start.length && ignored.startsWith(start))) return;
    const fitting = ignoredStarts.filter((ignored) => start.startsWith(ignored));
    const text = start.slice(Math.max(0, ...fitting.map((ignored) => ignored.length)));
    this.#start = undefined;
    if (text !== "") this.#events.push({ kind: "text", text });
  }

  /** Begins the name of a tool call. `marker` announced the call, and `rest` is the text expected before the name. */
  #enterName(marker: string, rest: string): void {
    const held = this.#scanner.takeRaw();
    const before = this.#calls?.beforeArguments ?? "";
    const candidates = this.#options.tools.map(({ name }) => ({
      name,
      text: rest + name + before.replaceAll("{{functionName}}", name),
    }));
    this.#candidates = candidates.filter(({ text }) => text.startsWith(held));
    if (this.#candidates.length === 0) {
      // The text matches no tool, so it is delivered as plain text.
      this.#deliver(marker + held);
      return;
    }
    this.#mode = "name";
    this.#callText = held;
    if (!this.#nameIsComplete()) {
      const grammar = oneOfTextsGrammar(this.#candidates.map(({ text }) => text.slice(held.length)));
      this.#grammar = this.#options.startGrammar(grammar);
    }
  }

  #readName(text: string): void {
    this.#callText += text;
    this.#nameIsComplete();
  }

  #nameIsComplete(): boolean {
    this.#candidates = this.#candidates.filter(({ text }) => text.startsWith(this.#callText));
    const [only] = this.#candidates;
    // A longer tool name may begin with this one, so the name is not complete yet.
    if (only === undefined || this.#candidates.length > 1 || only.text !== this.#callText) return false;
    const tool = this.#options.tools.find(({ name }) => name === only.name);
    this.#mode = "arguments";
    this.#arguments = new JsonCompleteness();
    this.#grammar = tool === undefined ? undefined : this.#options.startGrammar(tool.grammar);
    const id = `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
    this.#events.push({ kind: "call", index: this.#callCount, id, name: only.name });
    this.#callCount += 1;
    return true;
  }

  #readArguments(text: string): void {
    this.#events.push({ kind: "arguments", index: this.#callCount - 1, text });
    this.#arguments.push(text);
    if (!this.#arguments.complete) return;
    if (!this.#options.parallelCalls || this.#calls?.parallel !== true) {
      this.#ended = true;
      return;
    }
    const name = this.#candidates[0]?.name ?? "";
    this.#injection = this.#calls.afterArguments.replaceAll("{{functionName}}", name);
    this.#enter("after-call", false);
  }
}

/**
 * Extends the grammar of an answer so that the model may announce a tool call instead. Answer and call cannot be
 * in one grammar, so the call gets its own when it begins.
 */
function orCall(grammar: string, calls: CallSyntax | undefined): string {
  if (calls === undefined) return grammar;
  const announcements = [...calls.openings.keys()].map(literal).join(" | ");
  return grammar.replace(/^root ::= (.*)$/m, (_, root: string) => `root ::= (${root}) | ${announcements}`);
}
