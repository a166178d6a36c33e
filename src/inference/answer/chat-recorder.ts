// Collects and stores a chat completion.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ChatWriter, NewChat } from "../../domain/models/stored-chat.ts";
import { keyOf, type Principal } from "../../domain/principal.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { KeptAnswers } from "../../requests/dialects/answer.ts";
import { requireMetadata } from "../../wire/stored-chats.ts";
import { type AnswerEnd, AnswerRecorder, secondsPerDay } from "./answer-recorder.ts";

const notParameters = new Set(["model", "messages", "stream", "stream_options", "store", "metadata"]);

export interface ChatRecorderOptions {
  principal: Principal;
  request: DecodedRequest;
  /** Public id of the model, also if the client used an alias. */
  model: string;
  writer: ChatWriter;
  memoryAccount: MemoryAccount;
  kept: KeptAnswers;
}

/** Stores the chat completion later, through a queue, so that the client does not wait. */
export class ChatRecorder extends AnswerRecorder {
  readonly #options: ChatRecorderOptions;
  readonly #metadata: Readonly<Record<string, string>>;

  /** Throws `invalid_request` if the request's metadata exceeds the limits. */
  constructor(options: ChatRecorderOptions) {
    super(options.kept, options.memoryAccount);
    this.#options = options;
    this.#metadata = requireMetadata(options.request.body["metadata"]);
  }

  /** Stores the chat if the request has the outcome `completed`. */
  override keep({ createdAt, usage, outcome }: AnswerEnd): undefined {
    if (outcome !== "completed") return;
    const { principal, request, model, writer } = this.#options;
    const completion = this.answer(usage);
    const id = completion?.["id"];
    if (!completion || typeof id !== "string") {
      writer.notStored(principal.account.id, this.lost ?? "empty");
      return;
    }
    const { body, text } = request;
    const { account, environment, appId } = principal;
    const chat: NewChat = {
      id,
      accountId: account.id,
      environment,
      keyId: keyOf(principal).id,
      appId,
      personId: keyOf(principal).personId,
      model,
      createdAt,
      expiresAt: createdAt + writer.retentionDays * secondsPerDay,
      metadata: this.#metadata,
      parameters: Object.fromEntries(Object.entries(body).filter(([name]) => !notParameters.has(name))),
      completion,
      messages: body["messages"] as readonly unknown[],
    };
    writer.add(chat, text.length + this.size);
  }
}
