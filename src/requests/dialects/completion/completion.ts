// The dialect of completions, in which the model continues one or more texts.

import { generates } from "../../../domain/models/operation.ts";
import { completionRequest } from "../../../wire/completion.ts";
import type { Dialect } from "../dialect.ts";
import { comment } from "../keep-alive.ts";
import { streamChunks } from "../openai/chunks.ts";
import { choicesSaid, piecesSaid, readReported, textsSaid } from "../openai/said.ts";
import { readAnswer } from "../openai/whole-answer.ts";
import { estimatePromptTokens } from "../prompt-tokens.ts";

export const completion: Dialect = {
  operation: "completion",
  endpoint: "completions",
  capability: "completion",
  spanName: "text_completion",
  maker: "openai",
  format: undefined,
  task: undefined,

  schema: completionRequest,
  countSchema: undefined,
  rewritten: undefined,
  shownMembers: undefined,
  promptTokens: (body) => estimatePromptTokens("prompt", body),
  isPlain: () => true,
  opened: undefined,
  isStoredByDefault: false,
  asksForUsage: true,
  limitMembers: ["max_completion_tokens", "max_tokens"],
  minLimit: () => 1,
  isLimitRequired: false,
  promptMember: "prompt",
  isConversation: false,
  generates: generates.completion,
  knowsNewerLimit: false,
  width: (choices, bestOf, prompts) => Math.max(choices, bestOf) * prompts,
  hasMedia: () => false,

  answerList: "choices",
  answerObject: "text_completion",
  chunkObject: "text_completion",
  itemBytes: 0,
  idOf: (requestId) => `cmpl-${requestId.replace(/^req_/, "")}`,
  encode: () => false,
  readAnswer,
  long: undefined,
  stream: streamChunks,
  reportsPromptFirst: false,
  keepAlive: comment,
  errorEvent: (rendered) => `data: ${rendered}\n\n`,
  kept: undefined,
  namesKept: undefined,

  asked: textsSaid,
  answered: choicesSaid,
  streamed: piecesSaid,
  readReported,
};
