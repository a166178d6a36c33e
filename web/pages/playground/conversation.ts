// A conversation of the playground. It survives visits to other pages, and a reload in its tab.
import { type ApiFailure, asFailure, call } from "../../api/client.ts";
import type { RequestDetail, Usage } from "../../api/types.ts";
import { type AnswerObserver, type AnswerPath, streamAnswer } from "./answer-stream.ts";
import type { Answer, ConversationState, Exchange, Message } from "./exchange.ts";
import { keep, keptOf } from "./kept-conversation.ts";
import { parametersOf, untouched } from "./settings.ts";

const waiting: Omit<Answer, "model"> = {
  state: "waiting",
  ...{ text: "", thought: "", finishReason: null, usage: null, firstTokenMs: null },
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
  messages(question: string, before = this.#state.exchanges): Message[] {
    const { system } = this.#state.settings;
    const messages: Message[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
    for (const { question: content, answer } of before) {
      if (answer.text === "") continue;
      messages.push({ role: "user", content }, { role: "assistant", content: answer.text });
    }
    return [...messages, { role: "user", content: question }];
  }

  ask(model: string, question: string): void {
    if (this.#state.running) return;
    void this.#ask(model, question, this.#state.exchanges);
  }

  /** Asks `question` in place of an earlier one: the earlier exchange and all later ones are dropped. */
  askAgain(model: string, id: number, question: string): void {
    const index = this.#state.exchanges.findIndex((exchange) => exchange.id === id);
    if (this.#state.running || index < 0) return;
    void this.#ask(model, question, this.#state.exchanges.slice(0, index));
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

  async #ask(model: string, question: string, before: readonly Exchange[]): Promise<void> {
    const run = new AbortController();
    this.#run = run;
    const messages = this.messages(question, before);
    const content = this.#path === "/v1/completions" ? { prompt: question } : { messages };
    const body = { model, ...content, ...parametersOf(this.#state.settings) };
    const id = this.#nextId++;
    const live = new LiveAnswer(model, (answer) => this.#show(id, answer));
    this.#set({
      ...{ exchanges: [...before, { id, question, answer: live.answer }], cleared: null, model, running: true },
    });
    try {
      live.end(await streamAnswer(this.#path, body, live, run.signal));
    } catch (error) {
      if (run.signal.aborted) live.end(null);
      else live.fail(asFailure(error, "The playground failed"));
    } finally {
      this.#run = undefined;
      this.#set({ running: false });
    }
    await this.#addSpeed(id, live.answer);
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

/** A streaming answer, which is rendered at most once per frame. */
class LiveAnswer implements AnswerObserver {
  answer: Answer;
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

  /** `end` is null if the user stopped the answer. */
  end(end: { finishReason: string | null; usage: Usage | null } | null): void {
    this.#finish(end ? { state: "done", ...end } : { state: "stopped" });
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

const current = new Map<AnswerPath, { of: string; conversation: Conversation }>();

/**
 * Returns the conversation of `of`: a person, an account and an environment. Stops and drops the conversation of any
 * other `of`.
 */
export function conversationOf(path: AnswerPath, of: string): Conversation {
  const known = current.get(path);
  if (known?.of === of) return known.conversation;
  known?.conversation.end();
  const conversation = new Conversation(path, of);
  current.set(path, { of, conversation });
  return conversation;
}
