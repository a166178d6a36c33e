// The dialect of chat completions, in which the model continues a conversation.

import { generates } from "../../../domain/models/operation.ts";
import { chatRequest } from "../../../wire/chat.ts";
import { chatIdOf } from "../../../wire/stored-chats.ts";
import type { Dialect } from "../dialect.ts";
import { comment } from "../keep-alive.ts";
import { streamChunks } from "../openai/chunks.ts";
import { choicesSaid, messagesSaid, piecesSaid, readReported } from "../openai/said.ts";
import { readAnswer } from "../openai/whole-answer.ts";
import { estimatePromptTokens, isMediaPart } from "../prompt-tokens.ts";
import { isStream, streamedAnswer } from "../translation/translated-answer.ts";
import { ChunkCollector } from "./chunk-collector.ts";
import { inChatForm } from "./foreign-forms.ts";
import { chatFormat } from "./format.ts";

export const chat: Dialect = {
  operation: "chat",
  endpoint: "chat completions",
  capability: "chat",
  spanName: "chat",
  maker: "openai",
  format: chatFormat,
  task: undefined,

  schema: chatRequest,
  countSchema: undefined,
  rewritten: inChatForm,
  shownMembers: undefined,
  promptTokens: (body) => estimatePromptTokens("messages", body),
  isPlain: () => true,
  opened: undefined,
  isStoredByDefault: false,
  asksForUsage: true,
  limitMembers: ["max_completion_tokens", "max_tokens"],
  minLimit: () => 1,
  isLimitRequired: false,
  promptMember: "messages",
  isConversation: true,
  generates: generates.chat,
  knowsNewerLimit: true,
  // Old versions of vLLM generate `best_of` answers for a chat too.
  width: (choices, bestOf) => Math.max(choices, bestOf),
  hasMedia,

  answerList: "choices",
  answerObject: "chat.completion",
  chunkObject: "chat.completion.chunk",
  itemBytes: 0,
  idOf: chatIdOf,
  encode: () => false,
  readAnswer: (bytes, request, serving, names) =>
    isStream(bytes)
      ? streamedAnswer(bytes, request, serving, names, chatFormat)
      : readAnswer(bytes, request, serving, names),
  long: undefined,
  stream: streamChunks,
  reportsPromptFirst: false,
  keepAlive: comment,
  errorEvent: (rendered) => `data: ${rendered}\n\n`,
  kept: {
    as: "chat",
    ofAllEvents: true,
    collector: () => new ChunkCollector(),
    members: () => undefined,
    unkept: (answer) => answer,
  },
  namesKept: undefined,

  asked: messagesSaid,
  answered: choicesSaid,
  streamed: piecesSaid,
  readReported,
};

function hasMedia(messages: unknown): boolean {
  if (!Array.isArray(messages)) return false;
  for (const { content } of messages as { content?: unknown }[]) {
    if (Array.isArray(content) && content.some(isMediaPart)) return true;
  }
  return false;
}
