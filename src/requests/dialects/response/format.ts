// OpenAI's Responses API as a conversation format.
import type { ConversationFormat } from "../conversation/format.ts";
import { responseAdaptations } from "./adaptations.ts";
import { readRequest } from "./read-request.ts";
import { ResponseReader } from "./reply-reader.ts";
import { ResponseWriter } from "./reply-writer.ts";
import { writeRequest } from "./write-request.ts";

export const responseFormat: ConversationFormat = {
  readRequest,
  writeRequest,
  reader: (names, engine) => new ResponseReader(names, engine),
  adaptations: responseAdaptations,
  writer: (head) => new ResponseWriter(head),
};
