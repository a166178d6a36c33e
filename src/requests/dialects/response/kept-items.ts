// Items that are kept, and those of a request that name them: what is put in their place, and what goes to an engine of them.
import { newItemId } from "../../../domain/models/item-id.ts";
import type { StoredItem } from "../../../domain/models/stored-response.ts";
import { isObject, type Json, objectsOf, textOf } from "./json.ts";

/** Whether a request names what is kept here: a response, a conversation, or an item of either. */
export function namesKept({ previous_response_id: previous, conversation, input }: Json): boolean {
  if (isNamed(previous) || isNamed(conversation)) return true;
  return Array.isArray(input) && input.some((item) => isObject(item) && isReference(item));
}

function isNamed(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** An item that stands for a kept one; clients may leave out its type. */
export function isReference({ type, role }: Json): boolean {
  return type === "item_reference" || (!isNamed(type) && !isNamed(role));
}

/** The items of a request's own input as they are kept: each with an id, a message with its type and parts. */
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

/** What an engine gets of kept items: it keeps nothing itself, so it could not look anything up by an id. */
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
 * OpenAI looks for reasoning by its id where it does not come encrypted, and refuses what it does not find. What has
 * neither text nor that says nothing to anybody.
 */
function reasoningForEngine(item: Json): Json[] {
  const { id: _id, ...rest } = item;
  const isSealed = typeof rest["encrypted_content"] === "string" && rest["encrypted_content"] !== "";
  if (isSealed || objectsOf(rest["content"]).length > 0) return [item];
  return objectsOf(rest["summary"]).length > 0 ? [rest] : [];
}
