// Model servers in memory that write one known answer, token by token, behind whatever was sent of it, and break off as planned.
import type { BodySink, BodySource } from "../../src/base/bytes/body-source.ts";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { ClientStream } from "../../src/base/bytes/client-stream.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { systemClock } from "../../src/base/clock.ts";
import { GatewayError } from "../../src/base/errors.ts";
import type { StopLease } from "../../src/domain/limits/limits.ts";
import type { ChatContinuation, Engine, EngineRequest, EngineResponse } from "../../src/domain/models/engine.ts";
import type { Model } from "../../src/domain/models/model.ts";
import type { Operation } from "../../src/domain/models/operation.ts";
import type { InferenceCourse, Observer } from "../../src/domain/usage/observer.ts";
import type { UsageEnd } from "../../src/domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../../src/inference/call.ts";
import { Capacity } from "../../src/inference/routing/capacity.ts";
import { Router } from "../../src/inference/routing/route.ts";
import { run } from "../../src/inference/run.ts";
import { Stopping } from "../../src/inference/stopping.ts";
import { decodedRequest } from "./decoded-request.ts";
import { noDoubts } from "./no-doubts.ts";
import { noSeal } from "./no-seal.ts";
import { principalFor } from "./principal.ts";

export const breaks = ["reset", "close", "error-event", "silence"] as const;

/** After so many bytes of what it sends; the head is not counted. */
export interface Break {
  atByte: number;
  how: (typeof breaks)[number];
}

/** What one server did for one request. */
export interface Served {
  name: string;
  body: Record<string, unknown>;
  /** Tokens of the answer that came with the prompt. */
  begun: number;
  promptTokens: number;
  /** Bytes that it would have sent. */
  length: number;
}

export interface ServerPlan {
  tokens: readonly string[];
  /** For the first request, the next, and so on, at whichever server; then all goes well. */
  breaks?: readonly Break[];
  continues?: ChatContinuation | undefined;
  servers?: readonly string[];
  /** What stands in place of the deltas of the answer. */
  deltas?: readonly Record<string, unknown>[];
  /** The same for all servers but the first that is asked. */
  laterDeltas?: readonly Record<string, unknown>[];
  countsTokens?: boolean;
  policies?: Model["policies"];
  price?: Model["price"];
  /** What a quota that ends answers has set aside. */
  stop?: StopLease;
  /** What the gateway has beside the usual. */
  deps?: (world: ContinuingWorld) => Partial<InferenceDeps>;
}

/** Tokens of every prompt, without what came of the answer. */
export const basePrompt = 23;

/** Servers that all serve the model `m`, and a gateway before them. */
export class ContinuingWorld {
  readonly served: Served[] = [];
  readonly ends: UsageEnd[] = [];
  readonly courses: InferenceCourse[] = [];
  readonly capacity: Capacity;
  readonly router = new Router(systemClock);
  readonly deps: InferenceDeps;
  readonly clientGone = new Cancellation();
  readonly engines: Engine[];
  model: Model;
  readonly #plan: ServerPlan;

  constructor(plan: ServerPlan) {
    this.#plan = plan;
    this.engines = (plan.servers ?? ["a", "b", "c", "d"]).map((name) => this.#engine(name));
    this.model = {
      ...{ id: "m", created: 0, ownedBy: "", capabilities: undefined, context: undefined, price: plan.price },
      environments: ["live"],
      deployments: this.engines.map((engine) => ({ engine, model: "m", weight: 1 })),
      policies: plan.policies ?? { continuation: true },
    };
    const bounds = () => ({ maxWaiting: 8, maxWaitMs: 1_000 });
    this.capacity = new Capacity({ clock: systemClock, router: this.router, bounds });
    this.deps = { ...this.#deps(), ...plan.deps?.(this) };
  }

  /** Places that are taken now. */
  get inFlight(): number {
    return this.engines.reduce((sum, engine) => sum + (this.capacity.figures(engine)[0]?.inFlight ?? 0), 0);
  }

  /** What the servers have read and written of a whole answer; what was read where nothing came of it is not charged. */
  get computed(): { promptTokens: number; completionTokens: number } {
    const end = this.#plan.tokens.length + 1;
    const useful = this.served.filter(({ begun }, index) => (this.served[index + 1]?.begun ?? end) > begun);
    return { promptTokens: useful.reduce((sum, { promptTokens }) => sum + promptTokens, 0), completionTokens: end };
  }

  async ask(body: Record<string, unknown>, operation: Operation = "chat", more: Partial<InferenceCall<unknown>> = {}) {
    const client = new Gathering();
    const request = decodedRequest({ stream: true, ...body }, operation);
    const call: InferenceCall<unknown> = {
      ...{
        request,
        principal: principalFor(),
        requestId: "req_1",
        tagHeader: null,
        memoryAccount: bufferedBytes.visitors,
      },
      clientGone: this.clientGone,
      renderError: (error: GatewayError) => JSON.stringify({ error: { message: error.message, code: error.code } }),
      onLimits() {},
      onServedBy() {},
      onIgnored() {},
      onCapped() {},
      onLedger() {},
      onEnd() {},
      answer: (given: InferenceAnswer) => {
        if (typeof given === "function") given(client);
        else client.end(String(given));
      },
      ...more,
    };
    await Promise.resolve(run(call, this.deps)).catch((error) => client.end(`refused: ${error}`));
    await client.over;
    return client.text;
  }

  #engine(name: string): Engine {
    const { continues = "last_message", countsTokens } = this.#plan;
    const engine: Engine = {
      name,
      redact: (text) => text,
      models: async () => [],
      continues: () => ("continues" in this.#plan ? this.#plan.continues : continues),
      send: (request) => Promise.resolve(this.#answer(name, request)),
    };
    if (countsTokens) engine.countTokens = async ({ body }) => basePrompt + this.#begun(parse(body));
    return engine;
  }

  #answer(name: string, request: EngineRequest): EngineResponse {
    const body = parse(request.body);
    const begun = this.#begun(body);
    const all = Buffer.from(this.#stream(body, begun, request.operation === "chat"));
    const plan = this.#plan.breaks?.[this.served.length];
    this.served.push({ name, body, begun, promptTokens: basePrompt + begun, length: all.length });
    const headers = new Headers({ "content-type": "text/event-stream" });
    return { status: 200, headers, body: bodyThatBreaks(all, plan) };
  }

  #begun(body: Record<string, unknown>): number {
    const { tokens } = this.#plan;
    const text = begunText(body);
    let at = 0;
    for (let length = 0; length < Buffer.byteLength(text); at++) length += Buffer.byteLength(tokens[at] ?? "?");
    if (tokens.slice(0, at).join("") !== text) throw new Error(`no begin of the answer: ${JSON.stringify(text)}`);
    return at;
  }

  #stream(body: Record<string, unknown>, begun: number, isChat: boolean): string {
    const { tokens, laterDeltas } = this.#plan;
    const deltas = this.served.length > 0 ? (laterDeltas ?? this.#plan.deltas) : this.#plan.deltas;
    const names = { id: `own-${this.served.length}`, created: 1_000 + this.served.length, model: "m" };
    const head = { ...names, object: isChat ? "chat.completion.chunk" : "text_completion" };
    const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
    const choice = (said: object, finish: string | null = null) =>
      event({ ...head, choices: [{ index: 0, ...said, finish_reason: finish }] });
    const limit = Number(body["max_tokens"] ?? body["max_completion_tokens"] ?? Number.POSITIVE_INFINITY);
    const rest = tokens.slice(begun, begun + limit);
    const isCut = rest.length < tokens.length - begun;
    const said = isChat
      ? [
          { delta: { role: "assistant", content: "" } },
          ...(deltas ?? rest.map((content) => ({ content }))).map((delta) => ({ delta })),
        ]
      : rest.map((text) => ({ text }));
    const completion_tokens = rest.length + (isCut ? 0 : 1);
    const usage = { prompt_tokens: basePrompt + begun, completion_tokens, total_tokens: 0 };
    const last = choice(isChat ? { delta: {} } : { text: "" }, isCut ? "length" : "stop");
    return `${said.map((one) => choice(one)).join("")}${last}${event({ ...head, choices: [], usage })}data: [DONE]\n\n`;
  }

  #deps(): InferenceDeps {
    const { router, capacity } = this;
    const modelOf = () => this.model;
    const observer: Observer = {
      httpEnded() {},
      inferenceBegan() {},
      inferenceEnded: (_begin, _end, course) => void this.courses.push(course),
      inferenceRefused() {},
      attempted() {},
    };
    return {
      catalog: { find: modelOf, get: modelOf, whenComplete: async () => {} },
      ...{ router, capacity, observer },
      admitter: {
        admit: () => ({
          lease: { extend() {}, settle() {} },
          reservedTokens: 1,
          stop: this.#plan.stop,
          status: { requests: undefined, tokens: undefined },
        }),
        admitDearer: () => undefined,
        learn() {},
        learnCached() {},
      },
      requestTags: { of: () => undefined },
      ledger: {
        begin: () => ({
          begun: Promise.resolve(),
          progress() {},
          settle: async (end) => void this.ends.push(end),
        }),
      },
      refusalCounts: { count() {} },
      usageDoubts: noDoubts,
      chatWriter: { retentionDays: 0, add() {}, notStored() {}, flush: async () => {} },
      responseKeeper: { retentionDays: 0, requireRoom: async () => {}, keep: async () => true, notStored() {} },
      clock: systemClock,
      stopping: new Stopping(),
      heartbeatMs: 10_000,
      sealFor: () => noSeal,
    };
  }
}

/** What of the answer came with the request. */
function begunText({ messages, prompt }: Record<string, unknown>): string {
  if (typeof prompt === "string") return prompt.slice(question.length);
  const last = (messages as { role: string; content: string }[]).at(-1);
  return last?.role === "assistant" ? last.content : "";
}

export const question = "What is it?";
export const messages = [{ role: "user", content: question }];

function parse(body: EngineRequest["body"]): Record<string, unknown> {
  return JSON.parse(typeof body === "string" ? body : body.solid.text);
}

/** In reads of some bytes each, so that events are cut anywhere. */
function bodyThatBreaks(bytes: Buffer, plan: Break | undefined): BodySource {
  let isCancelled = false;
  const until = plan ? Math.min(plan.atByte, bytes.length) : bytes.length;
  const give = async (sink: BodySink) => {
    for (let start = 0; start < until; start += 512) {
      await turn();
      if (isCancelled) return;
      sink.data(ByteSpan.of(Buffer.from(bytes.subarray(start, Math.min(start + 512, until)))));
    }
    await turn();
    if (isCancelled) return;
    if (plan?.how === "error-event") {
      sink.data(ByteSpan.of(`\n\ndata: {"error":{"message":"out of memory","code":500}}\n\n`));
      if (!isCancelled) sink.end();
    } else if (plan?.how === "silence")
      sink.fail(new GatewayError("upstream_timeout", "The model server went silent."));
    else if (plan?.how === "reset") sink.fail(new Error("ECONNRESET"));
    else sink.end();
  };
  return {
    flow: (sink) => void give(sink),
    pause() {},
    resume() {},
    cancel() {
      isCancelled = true;
    },
  };
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

class Gathering implements ClientStream {
  readonly over: Promise<void>;
  onDrain: (() => void) | undefined;
  #bytes = "";
  #end: () => void = () => {};

  constructor() {
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get text(): string {
    return Buffer.from(this.#bytes, "latin1").toString();
  }

  write(bytes: string): boolean {
    this.#bytes += bytes;
    return true;
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  end(last = ""): void {
    this.#bytes += last;
    this.#end();
  }

  abort(): void {
    this.#end();
  }
}
