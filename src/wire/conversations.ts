// Schemas of OpenAI's Conversations API: the requests and answers of its endpoints.
import { z } from "zod";
import type { Conversation } from "../domain/models/stored-response.ts";
import { unixSeconds } from "./parts.ts";
import { responseInputItem, responseItem } from "./responses.ts";
import { metadata } from "./stored-chats.ts";

/** Maximum number of items in one request (OpenAI API reference, "Create a conversation"). */
const maxItemsAtOnce = 20;

const items = z
  .array(responseInputItem)
  .max(maxItemsAtOnce)
  .describe(`Up to ${maxItemsAtOnce} items, in the format of a response's input. Add more with further requests.`);

export const conversationRequest = z
  .object({ items: items.nullish(), metadata: metadata.nullish() })
  .meta({ id: "ConversationRequest" });

export const conversationUpdate = z
  .object({ metadata: metadata.nullable().describe("Replaces all labels. null removes them.") })
  .meta({ id: "ConversationUpdate" });

export const itemsRequest = z.object({ items: items.min(1) }).meta({ id: "ConversationItemsRequest" });

export const conversation = z
  .object({
    id: z.string(),
    object: z.literal("conversation"),
    created_at: unixSeconds,
    metadata: z.record(z.string(), z.string()),
  })
  .meta({ id: "Conversation" });

export const deletedConversation = z
  .object({ id: z.string(), object: z.literal("conversation.deleted"), deleted: z.literal(true) })
  .meta({ id: "DeletedConversation" });

/** OpenAI returns the items that were added as a list that has no further pages. */
export const addedItems = z
  .object({
    object: z.literal("list"),
    data: z.array(responseItem),
    first_id: z.string(),
    last_id: z.string(),
    has_more: z.literal(false),
  })
  .meta({ id: "AddedConversationItems" });

export function conversationToWire({ id, createdAt, metadata }: Conversation): z.infer<typeof conversation> {
  return { id, object: "conversation", created_at: createdAt, metadata: { ...metadata } };
}
