// Converts stored chats between rows and records, and labels to searchable tags.
import { createHash } from "node:crypto";
import type { NewChat, StoredChat } from "../../../domain/models/stored-chat.ts";
import { integer, json, table, text } from "../../sql/table.ts";

/** The listed members of a chat: all except its messages, which are read separately. */
export const storedChats = table<StoredChat>({
  id: text,
  accountId: text,
  environment: text,
  keyId: text,
  appId: text,
  personId: text,
  model: text,
  createdAt: integer,
  expiresAt: integer,
  metadata: json,
  parameters: json,
  completion: json,
});

/** A digest is enough because only equality is queried. It is short, and avoids a second copy of the text. */
export function tagOf([name, value]: readonly [string, string]): string {
  return createHash("sha256")
    .update(JSON.stringify([name, value]))
    .digest("base64url");
}

export function tagRows(
  chat: Pick<StoredChat, "id" | "accountId" | "environment" | "createdAt">,
  metadata: Readonly<Record<string, string>>,
) {
  return Object.entries(metadata).map((pair) => ({
    account_id: chat.accountId,
    environment: chat.environment,
    tag: tagOf(pair),
    created_at: chat.createdAt,
    chat_id: chat.id,
  }));
}

export function toRow(chat: NewChat) {
  const row = storedChats.row(chat);
  const size = String(row["parameters"]).length + String(row["completion"]).length;
  const messages = JSON.stringify(chat.messages);
  return { ...row, list_size: size, size: size + messages.length, messages };
}
