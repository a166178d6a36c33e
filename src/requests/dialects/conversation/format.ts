// A format in which a conversation can be had: read and written, as a request and as an answer.
import type { Engine } from "../../../domain/models/engine.ts";
import type { Seal } from "../../../domain/seal.ts";
import type { CallNames, Conversation, WrittenRequest } from "./conversation.ts";
import type { ReplyHead, ReplyReader, ReplyWriter } from "./reply.ts";

/** What keeps secrets out of an engine's own words, which only reach a client through it. */
export type EngineWords = Pick<Engine, "redact">;

export interface ConversationFormat {
  /** `body` fits the format's schema. Throws `invalid_request`, naming the field, for what no other format could be told. */
  readRequest(body: Readonly<Record<string, unknown>>, seal: Seal): Conversation;
  /**
   * `model`: the engine's own id. Throws `invalid_request` for what the format cannot say and may not be lost, naming the
   * field as the client does (`place`).
   */
  writeRequest(conversation: Conversation, model: string): WrittenRequest;
  /**
   * For one answer. `names`: of the request that it answers. `engine`: whose answer it is; without it a fault that the engine
   * tells reaches the client without its words.
   */
  reader(names: CallNames, engine?: EngineWords): ReplyReader;
  writer(head: ReplyHead): ReplyWriter;
}
