// Embeddings: each text becomes a list of numbers.

import { generates } from "../../../domain/models/operation.ts";
import { decodeEmbedding, embeddingRequest, encodeEmbedding } from "../../../wire/embedding.ts";
import { countTexts } from "../../../wire/parts.ts";
import type { AskedRequest } from "../answer.ts";
import type { Dialect } from "../dialect.ts";
import { comment } from "../keep-alive.ts";
import { malformed } from "../malformed.ts";
import { streamChunks } from "../openai/chunks.ts";
import { choicesSaid, piecesSaid, readReported, textsSaid } from "../openai/said.ts";
import { reportedUsage } from "../openai/usage.ts";
import { editedMember, readAnswer, usageOf } from "../openai/whole-answer.ts";
import { estimatePromptTokens } from "../prompt-tokens.ts";

export const embedding: Dialect = {
  operation: "embedding",
  endpoint: "embeddings",
  capability: "embeddings",
  spanName: "embeddings",
  maker: "openai",
  format: undefined,
  task: undefined,

  schema: embeddingRequest,
  countSchema: undefined,
  rewritten: undefined,
  shownMembers: undefined,
  promptTokens: (body) => estimatePromptTokens("input", body),
  isPlain: () => true,
  opened: undefined,
  isStoredByDefault: false,
  asksForUsage: true,
  limitMembers: ["max_completion_tokens", "max_tokens"],
  minLimit: () => 1,
  isLimitRequired: false,
  promptMember: "input",
  isConversation: false,
  generates: generates.embedding,
  knowsNewerLimit: true,
  width: () => 1,
  hasMedia: hasObjects,

  answerList: "data",
  answerObject: "list",
  chunkObject: "",
  itemBytes: 0,
  idOf: (requestId) => `embd-${requestId.replace(/^req_/, "")}`,
  encode: encodeAsAsked,
  readAnswer,
  long: {
    items: ({ body, hasMedia }) => (hasMedia ? undefined : countTexts(body["input"])),
    encoder: encoderFor,
    edited: editedMember,
    usage: ({ usage, service_tier: tier }, _items, request, { context }) =>
      usageOf(reportedUsage(usage, tier, false), request, [], context),
  },
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

function hasObjects(input: unknown): boolean {
  const items: readonly unknown[] = Array.isArray(input) ? input : [input];
  return items.some((item) => typeof item === "object" && !Array.isArray(item));
}

/**
 * Converts the items to the requested encoding, in place, and reports whether any item changed. If the gateway does not
 * know the encoding, the items stay as the model server sent them. Throws for a missing or invalid embedding, because
 * it would reach the client as a wrong vector. If the inputs are not texts, the number of embeddings is not checked.
 */
function encodeAsAsked(items: unknown[], request: AskedRequest): boolean {
  const encode = encoderFor(request);
  if (!encode) return false;
  const wanted = countTexts(request.body["input"]);
  if (!request.hasMedia && items.length !== wanted) throw malformed(`${items.length} embeddings for ${wanted} inputs`);
  let changed = false;
  for (const item of items) changed = encode(item) || changed;
  return changed;
}

/**
 * Returns a function that converts one item to the requested encoding, or undefined if only the model server knows this
 * encoding.
 */
function encoderFor({ body }: AskedRequest): ((item: unknown) => boolean) | undefined {
  const { encoding_format: encoding } = body;
  if (encoding === "base64") return asBase64;
  return encoding === "float" || encoding === undefined || encoding === null ? asNumbers : undefined;
}

function asBase64(value: unknown): boolean {
  const item = requireEmbedding(value);
  if (typeof item.embedding === "string") return false;
  item.embedding = encodeEmbedding(item.embedding);
  return true;
}

function asNumbers(value: unknown): boolean {
  const item = requireEmbedding(value);
  if (typeof item.embedding !== "string") return false;
  const numbers = decodeEmbedding(item.embedding);
  if (!numbers) throw malformed("an embedding that is not base64 of float32");
  item.embedding = numbers;
  return true;
}

/** Throws `upstream_error` if an item has neither a text nor a list of numbers as its embedding. */
function requireEmbedding(value: unknown): { embedding: string | number[] } {
  const item = value as { embedding?: unknown } | null;
  const embedding = item?.embedding;
  if (Array.isArray(embedding)) {
    if (!embedding.every(isFloat32)) throw malformed("an embedding with something that is no number");
  } else if (typeof embedding !== "string") {
    throw malformed("an item without an embedding");
  }
  return item as { embedding: string | number[] };
}

function isFloat32(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}
