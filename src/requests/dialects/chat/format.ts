// The conversation format of chat completions.
import type { ConversationFormat } from "../conversation/format.ts";
import { chatAdaptations } from "./adaptations.ts";
import { readChatRequest } from "./read-request.ts";
import { ChatReplyReader } from "./reply-reader.ts";
import { chatReplyWriter } from "./reply-writer.ts";
import { writeChatRequest } from "./write-request.ts";

export const chatFormat: ConversationFormat = {
  readRequest: readChatRequest,
  writeRequest: writeChatRequest,
  reader: (names, engine) => new ChatReplyReader(names, engine),
  adaptations: chatAdaptations,
  writer: chatReplyWriter,
};
