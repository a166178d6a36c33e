// The interface of a conversation format. A conversation format reads and writes requests and answers.
import type { Engine } from "../../../domain/models/engine.ts";
import type { Seal } from "../../../domain/seal.ts";
import type { Adaptation } from "./adaptations.ts";
import type { CallNames, Conversation, WrittenRequest } from "./conversation.ts";
import type { ReplyHead, ReplyReader, ReplyWriter } from "./reply.ts";

/** The function of an engine that removes secrets from the model server's error messages. */
export type EngineWords = Pick<Engine, "redact">;

export interface ConversationFormat {
  /**
   * Reads a body that fits the format's schema. If a member cannot be expressed in any other format, throws
   * `invalid_request`, which names the field.
   */
  readRequest(body: Readonly<Record<string, unknown>>, seal: Seal): Conversation;
  /**
   * Writes a request for `model`, which is the model server's own id of the model. `host` is the server's name or
   * address, if known. If the format cannot express a member that must not be lost, throws `invalid_request`. This
   * error names the field as the client does (`place`).
   */
  writeRequest(conversation: Conversation, model: string, host?: string): WrittenRequest;
  /** Changes to the written request that its model server may need. */
  readonly adaptations: readonly Adaptation[];
  /**
   * Returns a reader for one answer. `names` comes from `writeRequest`. Without `engine`, an error in the answer
   * reaches the client without the model server's words.
   */
  reader(names: CallNames, engine?: EngineWords): ReplyReader;
  writer(head: ReplyHead): ReplyWriter;
}
