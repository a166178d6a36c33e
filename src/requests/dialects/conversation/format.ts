// The interface of a conversation format, which reads and writes requests and answers.
import type { Engine } from "../../../domain/models/engine.ts";
import type { Seal } from "../../../domain/seal.ts";
import type { Adaptation } from "./adaptations.ts";
import type { CallNames, Conversation, WrittenRequest } from "./conversation.ts";
import type { ReplyHead, ReplyReader, ReplyWriter } from "./reply.ts";

/** The part of an engine that removes secrets from the model server's error messages. */
export type EngineWords = Pick<Engine, "redact">;

export interface ConversationFormat {
  /**
   * Reads a body that fits the format's schema. Throws `invalid_request`, naming the field, for members that no other
   * format can express.
   */
  readRequest(body: Readonly<Record<string, unknown>>, seal: Seal): Conversation;
  /**
   * Writes a request for `model`, the model server's own id. `host` is the server's name or address, if known. Throws
   * `invalid_request` for members that the format cannot express and that must not be lost, naming the field as the
   * client does (`place`).
   */
  writeRequest(conversation: Conversation, model: string, host?: string): WrittenRequest;
  /** Changes of a written request that its server may need. */
  readonly adaptations: readonly Adaptation[];
  /**
   * Returns a reader for one answer. `names` comes from the request. Without `engine`, errors in the answer reach the
   * client without the model server's words.
   */
  reader(names: CallNames, engine?: EngineWords): ReplyReader;
  writer(head: ReplyHead): ReplyWriter;
}
