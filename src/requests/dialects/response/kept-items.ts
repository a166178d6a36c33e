// Converts items that are or will be stored, and finds references to stored items in a request.
import { newItemId } from "../../../domain/models/item-id.ts";
import type { StoredItem } from "../../../domain/models/stored-response.ts";
import { isObject, type Json, objectsOf, textOf } from "./json.ts";

/** Reports whether a request refers to a stored response, a stored conversation, or an item of one of them. */
export function namesKept({ previous_response_id: previous, conversation, input }: Json): boolean {
  if (isNamed(previous) || isNamed(conversation)) return true;
  return Array.isArray(input) && input.some((item) => isObject(item) && isReference(item));
}

function isNamed(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Reports whether an item is a reference to a stored item. Clients may leave out the type of a reference. */
export function isReference({ type, role }: Json): boolean {
  return type === "item_reference" || (!isNamed(type) && !isNamed(role));
}

/**
 * Returns the items of a request's own input in the form in which they are stored. Each item gets an id, and each
 * message gets its type and parts.
 */
export function ownItems(input: unknown): StoredItem[] {
  if (typeof input === "string") return [keptItem({ role: "user", content: input })];
  return objectsOf(input).map(keptItem);
}

function keptItem(item: Json): StoredItem {
  const type = item["type"] ?? "message";
  const id = textOf(item["id"]) || newItemId(type);
  if (type !== "message") return { ...item, id, type };
  const { content, role } = item;
  const part = role === "assistant" ? { type: "output_text", annotations: [] } : { type: "input_text" };
  const parts = typeof content === "string" ? [{ ...part, text: content }] : content;
  return { status: "completed", ...item, id, type, content: parts };
}

/**
 * Returns stored items in the form for a model server. That server stores nothing, so it cannot find items by their
 * ids.
 */
export function itemsForEngine(items: readonly StoredItem[]): Json[] {
  return items.flatMap((item) => {
    const { type, role, id: _id, status: _status, ...rest } = item;
    if (type === "reasoning") return reasoningForEngine(item);
    if (type === "message" && role !== "assistant") return [{ type, role, ...rest }];
    if (typeof type === "string" && type.endsWith("_output")) return [{ type, ...rest }];
    return [item];
  });
}

/**
 * Returns reasoning in a form that OpenAI accepts. If reasoning is not encrypted, OpenAI looks it up by its id and
 * refuses an unknown id. Reasoning with neither text nor encryption is dropped.
 */
function reasoningForEngine(item: Json): Json[] {
  const { id: _id, ...rest } = item;
  const isSealed = typeof rest["encrypted_content"] === "string" && rest["encrypted_content"] !== "";
  if (isSealed || objectsOf(rest["content"]).length > 0) return [item];
  return objectsOf(rest["summary"]).length > 0 ? [rest] : [];
}
