// Chat completions as a format of conversations: what other formats say is written in it, and what it says is read.
import type { ConversationFormat } from "../conversation/format.ts";
import { readChatRequest } from "./read-request.ts";
import { ChatReplyReader } from "./reply-reader.ts";
import { chatReplyWriter } from "./reply-writer.ts";
import { writeChatRequest } from "./write-request.ts";

export const chatFormat: ConversationFormat = {
  readRequest: readChatRequest,
  writeRequest: writeChatRequest,
  reader: (names, engine) => new ChatReplyReader(names, engine),
  writer: chatReplyWriter,
};
