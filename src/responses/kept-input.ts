// Adds the stored conversation to the input of a request, before any other processing.
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { Clock } from "../base/clock.ts";
import { fieldError, GatewayError, invalidRequest } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import type { Operation } from "../domain/models/operation.ts";
import type {
  ChainFault,
  ConversationStore,
  MayRead,
  ResponseChain,
  ResponseOwner,
  ResponseStore,
  StoredItem,
} from "../domain/models/stored-response.ts";
import { decodeRequest, type RequestLimits } from "../requests/decode/decode-request.ts";
import type { DecodedRequest, GoesOn } from "../requests/decoded-request.ts";
import { isObject, type Json, objectsOf, textOf } from "../requests/dialects/response/json.ts";
import { isReference, itemsForEngine, ownItems } from "../requests/dialects/response/kept-items.ts";

/** Stores of responses and conversations. */
export interface KeptDeps {
  responses: Pick<ResponseStore, "chain" | "items">;
  conversations: Pick<ConversationStore, "all">;
  clock: Clock;
}

export interface KeptInputOptions {
  owner: ResponseOwner;
  limits: RequestLimits;
  /** Charges this many bytes until the request ends. Returns the refusal if there is no room. */
  hold(bytes: number): GatewayError | undefined;
  /**
   * Returns the items of an unstored response that the connection remembers, with its whole conversation; undefined for
   * any other response.
   */
  recentItems?(responseId: string): readonly StoredItem[] | undefined;
}

/** The continued conversation, and the complete input of the request. */
export interface WholeInput {
  readonly goesOn: GoesOn;
  /** Items for the engine. */
  readonly whole: readonly Json[];
  /** Bytes of stored items that are already charged to the memory account. */
  readonly reservedBytes: number;
}

/** Pattern of ids that the gateway creates. Other ids are not looked up. */
const idPattern = /^[\w-]+$/;
/** Maximum item references in one request, because each is looked up in the store. */
const maxReferences = 1_000;
/** Maximum items added to a conversation. Each is a row, and other writers wait until all are inserted. */
const maxAdded = 2_000;

/**
 * Returns the request with its whole conversation as input and without references. Rejects with a GatewayError if a
 * reference is unknown to the owner, or if the complete input is too long.
 */
export async function withKeptInput(
  request: DecodedRequest,
  deps: KeptDeps,
  options: KeptInputOptions,
): Promise<DecodedRequest> {
  const { body, dialect } = request;
  const { previous_response_id: _previous, conversation: _conversation, ...others } = body;
  const all = await wholeInput(body, deps, options);
  const decoded = decodeWhole(dialect.operation, { ...others, input: all.whole }, all, options);
  decoded.goesOn = all.goesOn;
  return decoded;
}

/** Decodes a request with the complete input, and counts its bytes. */
export function decodeWhole(
  operation: Operation,
  body: Json,
  { reservedBytes }: Pick<WholeInput, "reservedBytes">,
  { limits, hold }: Pick<KeptInputOptions, "limits" | "hold">,
): DecodedRequest {
  const bytes = Buffer.from(JSON.stringify(body));
  if (bytes.length > limits.bodyBytes) throw tooLong(limits);
  const refusal = hold(Math.max(0, bytes.length - reservedBytes));
  if (refusal) throw refusal;
  return decodeRequest(operation, ByteSpan.of(bytes), limits);
}

/**
 * Returns the complete input of a body that may continue a response or a conversation. Endpoints other than Responses
 * use this function as well.
 */
export async function wholeInput(body: Json, deps: KeptDeps, options: KeptInputOptions): Promise<WholeInput> {
  const previousId = idOf(body["previous_response_id"]);
  const conversationId = conversationOf(body["conversation"]);
  if (previousId !== null && conversationId !== null) {
    throw fieldError(
      "conversation",
      "cannot be sent together with previous_response_id, which names a conversation as well. Send one of them.",
    );
  }
  if (conversationId !== null) requireFewItems(body["input"]);
  const room = new Room(options);
  const recent = previousId === null ? undefined : options.recentItems?.(previousId);
  const before = recent ?? (await itemsBefore(previousId, conversationId, deps, options, room));
  const { asSent, input } = await resolved(body["input"], before, deps, options, room);
  if (previousId !== null || conversationId !== null) requireCalls(asSent, before);
  const goesOn: GoesOn = recent
    ? { previousId, keptAfter: null, conversationId, input: [...recent, ...input] }
    : { previousId, keptAfter: previousId, conversationId, input };
  return { goesOn, whole: [...itemsForEngine(before), ...asSent], reservedBytes: room.reservedBytes };
}

/** Charges stored items to memory before they are read, because they may be many times larger than the request. */
class Room {
  reservedBytes = 0;
  readonly #options: Pick<KeptInputOptions, "limits" | "hold">;
  #refusal: GatewayError | undefined;

  constructor(options: Pick<KeptInputOptions, "limits" | "hold">) {
    this.#options = options;
  }

  readonly mayRead: MayRead = (size) => {
    const { limits, hold } = this.#options;
    this.#refusal = this.reservedBytes + size > limits.bodyBytes ? tooLong(limits) : hold(size);
    if (!this.#refusal) this.reservedBytes += size;
    return !this.#refusal;
  };

  /** If `mayRead` has refused a read, throws the error for the client. */
  require(): void {
    if (this.#refusal) throw this.#refusal;
  }
}

function requireFewItems(input: unknown): void {
  if (!Array.isArray(input) || input.length <= maxAdded) return;
  throw fieldError(
    "input",
    `must have at most ${maxAdded} items where they are added to a conversation (got ${input.length}).`,
  );
}

/** Types of tool results that clients send, with the type of the call that each answers. */
const callsOfResults = new Map([
  ["function_call_output", "function_call"],
  ["custom_tool_call_output", "custom_tool_call"],
]);

/**
 * Throws if an item is the result of no call in the conversation, as OpenAI's API does. Compacted items may hide a
 * call.
 */
function requireCalls(sent: readonly Json[], before: readonly StoredItem[]): void {
  const isResult = ({ type }: Json) => callsOfResults.has(String(type));
  if (!sent.some(isResult)) return;
  const all: readonly Json[] = [...before, ...sent];
  if (all.some(({ type }) => type === "compaction" || type === "compaction_summary")) return;
  const calls = new Set(all.flatMap(({ type, call_id, id }) => [`${type} ${call_id}`, `${type} ${id}`]));
  for (const [index, { type, call_id }] of sent.entries()) {
    const call = callsOfResults.get(String(type));
    if (call === undefined || calls.has(`${call} ${call_id}`)) continue;
    const message = `must be that of a ${call} in the conversation. No tool call found for ${type} with call_id \`${shown(String(call_id))}\`.`;
    throw fieldError(`input[${index}].call_id`, message);
  }
}

function idOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function conversationOf(value: unknown): string | null {
  return isObject(value) ? idOf(value["id"]) : idOf(value);
}

async function itemsBefore(
  previousId: string | null,
  conversationId: string | null,
  { responses, conversations, clock }: KeptDeps,
  { owner, limits }: KeptInputOptions,
  room: Room,
): Promise<readonly StoredItem[]> {
  const now = clock.nowSeconds();
  if (previousId !== null) {
    if (!idPattern.test(previousId)) throw noSuchResponse(previousId, previousId);
    const chain = await responses.chain(owner, previousId, now, limits.bodyBytes, room.mayRead);
    room.require();
    if ("missing" in chain) throw noSuchResponse(previousId, chain.missing);
    return itemsOf(chain, limits);
  }
  if (conversationId === null) return [];
  if (!idPattern.test(conversationId)) throw noSuchConversation(conversationId);
  const all = await conversations.all(owner, conversationId, now, limits.bodyBytes, room.mayRead);
  room.require();
  if ("missing" in all) throw noSuchConversation(conversationId);
  return itemsOf(all, limits);
}

function itemsOf(chain: ResponseChain | Exclude<ChainFault, { missing: string }>, limits: RequestLimits) {
  if ("tooLarge" in chain) throw tooLong(limits);
  if ("unfinished" in chain) throw unfinished(chain.unfinished);
  return chain.items;
}

/** Returns the items of the request's own input, in the form for the engine and in the form to store. */
async function resolved(
  input: unknown,
  before: readonly StoredItem[],
  deps: KeptDeps,
  options: KeptInputOptions,
  room: Room,
): Promise<{ asSent: readonly Json[]; input: readonly StoredItem[] }> {
  if (typeof input === "string") {
    return { asSent: [{ type: "message", role: "user", content: input }], input: ownItems(input) };
  }
  const items = objectsOf(input);
  const found = await referenced(items, before, deps, options, room);
  const asSent: Json[] = [];
  const kept: StoredItem[] = [];
  for (const item of items) {
    const named = isReference(item) ? found.get(textOf(item["id"]) ?? "") : undefined;
    if (named) {
      asSent.push(...itemsForEngine([named]));
      kept.push(named);
    } else {
      asSent.push(item);
      kept.push(...ownItems([item]));
    }
  }
  return { asSent, input: kept };
}

/** Returns the items that the references name, by id. */
async function referenced(
  items: readonly Json[],
  before: readonly StoredItem[],
  { responses, clock }: KeptDeps,
  { owner }: KeptInputOptions,
  room: Room,
): Promise<ReadonlyMap<string, StoredItem>> {
  const ids = new Set<string>();
  for (const [index, item] of items.entries()) {
    if (!isReference(item)) continue;
    const id = textOf(item["id"]);
    if (!id) throw fieldError(`input[${index}].id`, "is required: the id of a kept item that is to stand here.");
    ids.add(id);
  }
  const found = new Map<string, StoredItem>();
  if (ids.size === 0) return found;
  if (ids.size > maxReferences) {
    throw fieldError("input", `must name at most ${maxReferences} kept items (got ${ids.size}). Send items whole.`);
  }
  for (const item of before) {
    const id = textOf(item["id"]);
    if (id !== undefined && ids.has(id)) found.set(id, item);
  }
  const missing = [...ids].filter((id) => !found.has(id));
  const stored = await responses.items(owner, missing, clock.nowSeconds(), room.mayRead);
  room.require();
  for (const id of missing) {
    const item = stored.get(id);
    if (!item) throw noSuchItem(id);
    found.set(id, item);
  }
  return found;
}

/**
 * Returns the same error for responses that are unknown, deleted or another owner's. `missing` is this response, or an
 * earlier response of its chain.
 */
function noSuchResponse(id: string, missing: string): GatewayError {
  const before = missing === id ? "" : `, as \`${shown(missing)}\` before it is not there any more`;
  return new GatewayError(
    "previous_response_not_found",
    `Previous response with id \`${shown(id)}\` not found${before}. Responses are kept until they expire or are deleted, and none with \`store: false\`. Send the items of the conversation as \`input\`.`,
    { param: "previous_response_id" },
  );
}

function noSuchConversation(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `Conversation with id \`${shown(id)}\` not found. Conversations are kept until they expire or are deleted; POST /v1/conversations makes one.`,
    { param: "conversation" },
  );
}

function noSuchItem(id: string): GatewayError {
  return new GatewayError(
    "not_found",
    `Item with id \`${shown(id)}\` not found. Items are kept with their responses, and none with \`store: false\`. Send the item itself.`,
    { param: "input" },
  );
}

function unfinished(id: string): GatewayError {
  return invalidRequest(
    `previous_response_id: the response \`${shown(id)}\` is still in progress. GET /v1/responses/{id} says when it has ended.`,
    { param: "previous_response_id" },
  );
}

function tooLong({ bodyBytes }: RequestLimits): GatewayError {
  return new GatewayError(
    "request_too_large",
    `With all that it goes on from the request is larger than the limit of ${bodyBytes} bytes. Make the conversation short with POST /v1/responses/compact, and send what that gives as \`input\`.`,
  );
}
