// Records a chat completion that shall be kept, as the client gets it.

import type { Holder } from "../../base/bytes/held-bytes.ts";
import type { AnswerCollector } from "../../dialects/answer.ts";
import type { Account } from "../../domain/account.ts";
import type { ChatWriter, NewChat } from "../../domain/models/stored-chat.ts";
import { keyOf, type Principal } from "../../domain/principal.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { requireMetadata } from "../../wire/stored-chats.ts";
import type { DecodedRequest } from "../decoded-request.ts";

/** Characters of an answer; a longer one is not stored. */
const maxAnswerSize = 10_000_000;
/** What is collected is told to the ledger in steps: most answers are shorter than one. */
const countedBytes = 64 * 1024;
const secondsPerDay = 86_400;
const notParameters = new Set(["model", "messages", "stream", "stream_options", "store", "metadata"]);

/** What the request says stands; where it says nothing, the account's setting. */
export function wantsStoring(
  account: Pick<Account, "storeChats">,
  request: Pick<DecodedRequest, "store">,
  retentionDays: number,
): boolean {
  if (retentionDays === 0) return false;
  return request.store ?? account.storeChats;
}

/** `model`: id of the model that is asked. `holder`: on whose account it is held meanwhile. Undefined where nothing is to be kept. Throws `invalid_request` for metadata beyond the limits. */
export function recorderFor(
  principal: Principal,
  request: DecodedRequest,
  model: string,
  writer: ChatWriter,
  holder: Holder,
): ChatRecorder | undefined {
  const { collector } = request.dialect;
  if (!collector || !wantsStoring(principal.account, request, writer.retentionDays)) return undefined;
  return new ChatRecorder({ principal, request, model, writer, holder, collector });
}

interface ChatRecorderOptions {
  principal: Principal;
  request: DecodedRequest;
  model: string;
  writer: ChatWriter;
  holder: Holder;
  collector: () => AnswerCollector;
}

/** Why it is not kept. */
type Loss = "too_large" | "unreadable" | "no_room";

/** Nothing is kept of what failed or was left by its client: then `keep` is not called. `release` is, in any case. */
export class ChatRecorder {
  readonly #principal: Principal;
  readonly #request: DecodedRequest;
  /** The client may have asked for it by an alias. */
  readonly #model: string;
  readonly #writer: ChatWriter;
  readonly #metadata: Readonly<Record<string, string>>;
  readonly #collector: () => AnswerCollector;
  #chunks: AnswerCollector | undefined;
  #whole: string | undefined;
  #lost: Loss | undefined;
  readonly #holder: Holder;
  #countedBytes = 0;

  constructor({ principal, request, model, writer, holder, collector }: ChatRecorderOptions) {
    this.#collector = collector;
    this.#holder = holder;
    this.#principal = principal;
    this.#request = request;
    this.#model = model;
    this.#writer = writer;
    this.#metadata = requireMetadata(request.body["metadata"]);
  }

  /** Text of one or more events of the stream, as they go to the client. */
  add(events: string): void {
    if (this.#lost) return;
    this.#chunks ??= this.#collector();
    try {
      this.#chunks.add(events);
      if (this.#chunks.size > maxAnswerSize) this.#loseTo("too_large");
      else this.#count(this.#chunks.size);
    } catch {
      this.#loseTo("unreadable");
    }
  }

  /** Text of an answer that is not streamed. */
  addWhole(text: string): void {
    if (text.length > maxAnswerSize) this.#loseTo("too_large");
    else this.#whole = text;
  }

  /**
   * The answer was delivered whole: it is stored as created at `createdAt` (Unix seconds). `usage` is for a stream whose
   * client did not ask for it.
   */
  keep(createdAt: number, usage: TokenUsage): void {
    const completion = this.#completion(usage);
    const id = completion?.["id"];
    if (!completion || typeof id !== "string") {
      this.#writer.notStored(this.#principal.account.id, this.#lost ?? "empty");
      return;
    }
    const { body, text } = this.#request;
    const { account, environment, appId } = this.#principal;
    const chat: NewChat = {
      id,
      accountId: account.id,
      environment,
      keyId: keyOf(this.#principal).id,
      appId,
      personId: keyOf(this.#principal).personId,
      model: this.#model,
      createdAt,
      expiresAt: createdAt + this.#writer.retentionDays * secondsPerDay,
      metadata: this.#metadata,
      parameters: Object.fromEntries(Object.entries(body).filter(([name]) => !notParameters.has(name))),
      completion,
      messages: body["messages"] as readonly unknown[],
    };
    this.#writer.add(chat, text.length + (this.#whole?.length ?? this.#chunks?.size ?? 0));
  }

  /** It collects nothing any more. */
  release(): void {
    if (this.#countedBytes > 0) this.#holder.release("chats", this.#countedBytes);
    this.#countedBytes = 0;
  }

  #count(size: number): void {
    const more = size - this.#countedBytes;
    if (more < countedBytes) return;
    if (this.#holder.take("chats", more)) this.#loseTo("no_room");
    else this.#countedBytes = size;
  }

  #completion(usage: TokenUsage): Record<string, unknown> | undefined {
    if (this.#lost) return undefined;
    try {
      return this.#whole === undefined ? this.#chunks?.answer(usage) : JSON.parse(this.#whole);
    } catch {
      // What an engine says must not keep the request from being logged.
      this.#loseTo("unreadable");
      return undefined;
    }
  }

  #loseTo(reason: Loss): void {
    this.#lost = reason;
    this.release();
    this.#chunks = undefined;
  }
}
