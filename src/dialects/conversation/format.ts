// A format in which a conversation can be had: read and written, as a request and as an answer.
import type { CallNames, Conversation, WrittenRequest } from "./conversation.ts";
import type { ReplyHead, ReplyReader, ReplyWriter, Seal } from "./reply.ts";

export interface ConversationFormat {
  /** `body` fits the format's schema. Throws `invalid_request`, naming the field, for what no other format could be told. */
  readRequest(body: Readonly<Record<string, unknown>>, seal: Seal): Conversation;
  /**
   * `model`: the engine's own id. Throws `invalid_request` for what the format cannot say and may not be lost, naming the
   * field as the client does (`place`).
   */
  writeRequest(conversation: Conversation, model: string): WrittenRequest;
  /** For one answer. `names`: of the request that it answers. */
  reader(names: CallNames): ReplyReader;
  writer(head: ReplyHead): ReplyWriter;
}
