// A conversation of the playground. It survives visits to other pages, and a reload in its tab.
import { type ApiFailure, asFailure, call } from "../../api/client.ts";
import type { JsonObject, Listed } from "../../api/tools.ts";
import type { RequestDetail, Usage } from "../../api/types.ts";
import { type AnswerObserver, type AnswerPath, streamAnswer } from "./answer-stream.ts";
import { contentOf } from "./attachments.ts";
import type { Answer, Attachment, ConversationState, Exchange, Message, ToolCall } from "./exchange.ts";
import { keep, keptOf } from "./kept-conversation.ts";
import { parametersOf, untouched } from "./settings.ts";
import { maxRounds, resultMessages, resultOf, toolParameters, withPiece } from "./tool-use.ts";

const waiting: Omit<Answer, "model"> = {
  state: "waiting",
  ...{ text: "", thought: "", calls: [], finishReason: null, usage: null, firstTokenMs: null },
  ...{ durationMs: null, tokensPerSecond: null, requestId: null, failure: null, failedAtMs: 0 },
};

const keepEveryMs = 1_000;

export class Conversation {
  readonly #path: AnswerPath;
  readonly #listeners = new Set<() => void>();
  #state: ConversationState = {
    ...{ exchanges: [], cleared: null, settings: untouched, draft: "", model: null, running: false },
  };
  #run: AbortController | undefined;
  #nextId = 1;

  readonly #of: string;
  #keeping: ReturnType<typeof setTimeout> | undefined;

  /**
   * If the endpoint `path` takes no messages, each question is a separate prompt. `of` identifies the person, the
   * account and the environment.
   */
  constructor(path: AnswerPath, of: string) {
    this.#path = path;
    this.#of = of;
    const kept = keptOf(path, of);
    if (kept) this.#state = { ...this.#state, ...kept };
    this.#nextId = 1 + Math.max(0, ...this.#state.exchanges.map(({ id }) => id));
    window.addEventListener("pagehide", this.#keepNow);
  }

  /** Ends this conversation before a new conversation replaces it. */
  end(): void {
    this.stop();
    this.#keepNow();
    window.removeEventListener("pagehide", this.#keepNow);
  }

  readonly #keepNow = (): void => {
    clearTimeout(this.#keeping);
    this.#keeping = undefined;
    keep(this.#path, this.#of, this.#state);
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly state = (): ConversationState => this.#state;

  update(changes: Partial<Pick<ConversationState, "settings" | "draft" | "model">>): void {
    this.#set(changes);
  }

  /**
   * Returns the messages of a request with this question. Earlier exchanges that failed before any answer arrived are
   * left out.
   */
  messages({ question, attachments }: Asking, before = this.#state.exchanges): Message[] {
    const { system } = this.#state.settings;
    const messages: Message[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
    for (const { question: earlier, attachments: files, answer } of before) {
      if (answer.text === "") continue;
      messages.push({ role: "user", content: contentOf(earlier, files) }, { role: "assistant", content: answer.text });
    }
    return [...messages, { role: "user", content: contentOf(question, attachments) }];
  }

  ask(model: string, asking: Asking): void {
    if (this.#state.running) return;
    void this.#ask(model, asking, this.#state.exchanges);
  }

  /**
   * Asks a question in place of an earlier question, and sends the earlier question's files again. The earlier exchange
   * and all later exchanges are dropped.
   */
  askAgain(model: string, id: number, asking: Asking): void {
    const index = this.#state.exchanges.findIndex((exchange) => exchange.id === id);
    if (this.#state.running || index < 0) return;
    const { attachments = [] } = this.#state.exchanges[index] ?? {};
    void this.#ask(model, { ...asking, attachments }, this.#state.exchanges.slice(0, index));
  }

  stop(): void {
    this.#run?.abort();
  }

  clear(): void {
    this.stop();
    const { exchanges } = this.#state;
    this.#set({ exchanges: [], cleared: exchanges.length > 0 ? exchanges : null });
  }

  bringBack(): void {
    const { cleared, exchanges } = this.#state;
    if (cleared && exchanges.length === 0) this.#set({ exchanges: cleared, cleared: null });
  }

  async #ask(model: string, asking: Asking, before: readonly Exchange[]): Promise<void> {
    const run = new AbortController();
    this.#run = run;
    const { question, attachments = [] } = asking;
    const messages = this.messages(asking, before);
    const id = this.#nextId++;
    const live = new LiveAnswer(model, (answer) => this.#show(id, answer));
    const files = attachments.length === 0 ? {} : { attachments };
    this.#set({
      ...{
        exchanges: [...before, { id, question, ...files, answer: live.answer }],
        cleared: null,
        model,
        running: true,
      },
    });
    const parameters = parametersOf(this.#state.settings);
    try {
      if (this.#path === "/v1/completions") {
        live.end(await streamAnswer(this.#path, { model, prompt: question, ...parameters }, live, run.signal));
      } else {
        const body = { model, ...parameters, ...toolParameters(asking.tools ?? []) };
        const allowed = new Set(asking.tools?.map(({ name }) => name));
        await this.#converse(body, { messages, allowed }, live, run.signal);
      }
    } catch (error) {
      if (run.signal.aborted) live.end(null);
      else live.fail(asFailure(error, "The playground failed"));
    } finally {
      this.#run = undefined;
      this.#set({ running: false });
    }
    await this.#addSpeed(id, live.answer);
  }

  /** Asks until the model calls no more tools, and sends the results of its calls in between. */
  async #converse(
    body: object,
    { messages: first, allowed }: { messages: readonly object[]; allowed: ReadonlySet<string> },
    live: LiveAnswer,
    signal: AbortSignal,
  ): Promise<void> {
    let messages = first;
    for (let round = 1; ; round++) {
      const said = live.answer.text.length;
      const end = await streamAnswer(this.#path, { ...body, messages }, live, signal);
      if (live.isWithoutCall || round === maxRounds) return live.end(end);
      const calls = await live.runTools(allowed, end.usage, signal);
      messages = [...messages, ...resultMessages(live.answer.text.slice(said), calls)];
    }
  }

  /** Speed is read from the server's log, because the network may deliver several pieces at once. */
  async #addSpeed(id: number, answer: Answer): Promise<void> {
    const { requestId, state } = answer;
    if (requestId === null || state !== "done") return;
    const path = `/v1/requests/${encodeURIComponent(requestId)}`;
    const logged = await call<RequestDetail>("GET", path).catch(() => undefined);
    if (logged) this.#show(id, { ...answer, tokensPerSecond: logged.tokens_per_second });
  }

  /** Updates the answer of an exchange, also if the exchange was cleared and can still be restored. */
  #show(id: number, answer: Answer): void {
    const { exchanges, cleared } = this.#state;
    const replace = (list: readonly Exchange[]) => list.map((one) => (one.id === id ? { ...one, answer } : one));
    this.#set({ exchanges: replace(exchanges), cleared: cleared && replace(cleared) });
  }

  #set(changes: Partial<ConversationState>): void {
    this.#state = { ...this.#state, ...changes };
    this.#keeping ??= setTimeout(this.#keepNow, keepEveryMs);
    for (const listener of this.#listeners) listener();
  }
}

/** A question with its files, and the tools that the model may call for it. */
export interface Asking {
  question: string;
  attachments?: readonly Attachment[];
  tools?: readonly Listed[];
}

/** A streaming answer, which is rendered at most once per frame. */
class LiveAnswer implements AnswerObserver {
  answer: Answer;
  /** The usage of the earlier requests of this answer. */
  #used: Usage | null = null;
  /** The calls of the current request. */
  #calls: ToolCall[] = [];
  /** The calls of the earlier requests. */
  #done: readonly ToolCall[] = [];
  readonly #show: (answer: Answer) => void;
  readonly #startedMs = performance.now();
  #frame: number | undefined;

  constructor(model: string, show: (answer: Answer) => void) {
    this.answer = { ...waiting, model };
    this.#show = show;
  }

  opened(requestId: string | null): void {
    this.#change({ requestId });
  }

  text(piece: string): void {
    if (piece !== "") this.#change({ ...this.#begun(), text: this.answer.text + piece });
  }

  thought(piece: string): void {
    if (piece !== "") this.#change({ ...this.#begun(), thought: this.answer.thought + piece });
  }

  call(piece: JsonObject): void {
    this.#showCalls(withPiece(this.#calls, piece));
  }

  get isWithoutCall(): boolean {
    return this.#calls.length === 0;
  }

  /** Runs the calls of the current request, one after the other, and returns them with their results. */
  async runTools(allowed: ReadonlySet<string>, usage: Usage | null, signal: AbortSignal): Promise<readonly ToolCall[]> {
    for (const [index, call] of this.#calls.entries()) {
      // A model may name any tool, for example because a text in the conversation told the model to call it.
      const result = allowed.has(call.name)
        ? await resultOf(call, signal)
        : "Error: the user did not choose this tool.";
      this.#showCalls(this.#calls.with(index, { ...call, result }));
    }
    this.#used = sumOf(this.#used, usage);
    const calls = this.#calls;
    this.#done = [...this.#done, ...calls];
    this.#calls = [];
    return calls;
  }

  /** `end` is null if the user stopped the answer. */
  end(end: { finishReason: string | null; usage: Usage | null } | null): void {
    this.#finish(end ? { state: "done", ...end, usage: sumOf(this.#used, end.usage) } : { state: "stopped" });
  }

  #showCalls(calls: ToolCall[]): void {
    this.#calls = calls;
    this.#change({ ...this.#begun(), calls: [...this.#done, ...calls] });
  }

  fail(failure: ApiFailure): void {
    // Only failures that reached a model server are in the log.
    const { requestId } = failure.code.startsWith("upstream_") ? failure : this.answer;
    this.#finish({ state: "failed", failure, failedAtMs: Date.now(), requestId });
  }

  #begun(): Pick<Answer, "state" | "firstTokenMs"> {
    return { state: "streaming", firstTokenMs: this.answer.firstTokenMs ?? performance.now() - this.#startedMs };
  }

  #change(changes: Partial<Answer>): void {
    this.answer = { ...this.answer, ...changes };
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      this.#show(this.answer);
    });
  }

  #finish(changes: Partial<Answer>): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.answer = { ...this.answer, ...changes, durationMs: performance.now() - this.#startedMs };
    this.#show(this.answer);
  }
}

/** Adds the usage of two requests; null if neither has any. */
function sumOf(one: Usage | null, other: Usage | null): Usage | null {
  if (!one || !other) return one ?? other;
  return {
    prompt_tokens: one.prompt_tokens + other.prompt_tokens,
    completion_tokens: one.completion_tokens + other.completion_tokens,
    total_tokens: one.total_tokens + other.total_tokens,
    ...(one.estimated || other.estimated ? { estimated: true as const } : {}),
  };
}

const current = new Map<string, { of: string; conversation: Conversation }>();

/**
 * Returns the conversation with this endpoint. `of` identifies the person, the account and the environment;
 * conversations of any other `of` are stopped and dropped. A model that is compared with the first has its own
 * conversation.
 */
export function conversationOf(path: AnswerPath, of: string, compared?: string): Conversation {
  for (const [place, one] of current) {
    if (one.of === of) continue;
    one.conversation.end();
    current.delete(place);
  }
  const place = compared === undefined ? path : `${path} ${compared}`;
  const known = current.get(place);
  if (known) return known.conversation;
  const conversation = new Conversation(path, compared === undefined ? of : `${of} ${compared}`);
  current.set(place, { of, conversation });
  return conversation;
}
