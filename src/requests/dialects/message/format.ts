// Anthropic's Messages API as a conversation format.
import type { ConversationFormat } from "../conversation/format.ts";
import { messageAdaptations } from "./adaptations.ts";
import { readRequest } from "./read-request.ts";
import { MessageReader } from "./reply-reader.ts";
import { MessageWriter } from "./reply-writer.ts";
import { writeRequest } from "./write-request.ts";

export const messageFormat: ConversationFormat = {
  readRequest,
  writeRequest,
  reader: (names, engine) => new MessageReader(names, engine),
  adaptations: messageAdaptations,
  writer: (head) => new MessageWriter(head),
};
