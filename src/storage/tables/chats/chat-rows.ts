// Stored chats between their rows and their records, and the tags that their labels are found by.
import { createHash } from "node:crypto";
import type { Environment } from "../../../domain/api-key.ts";
import type { NewChat, StoredChat } from "../../../domain/models/stored-chat.ts";

export interface ChatRow {
  id: string;
  account_id: string;
  environment: Environment;
  key_id: string;
  app_id: string | null;
  person_id: string | null;
  model: string;
  created_at: number | string;
  expires_at: number | string;
  metadata: string;
  parameters: string;
  completion: string;
}

/** Only equality is ever asked for; a digest is short, whatever the text, and no second copy of it. */
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
  const parameters = JSON.stringify(chat.parameters);
  const completion = JSON.stringify(chat.completion);
  return {
    id: chat.id,
    account_id: chat.accountId,
    environment: chat.environment,
    key_id: chat.keyId,
    app_id: chat.appId,
    person_id: chat.personId,
    model: chat.model,
    created_at: chat.createdAt,
    expires_at: chat.expiresAt,
    list_size: parameters.length + completion.length,
    metadata: JSON.stringify(chat.metadata),
    parameters,
    completion,
    messages: JSON.stringify(chat.messages),
  };
}

export function chatFromRow(row: ChatRow): StoredChat {
  return {
    id: row.id,
    accountId: row.account_id,
    environment: row.environment,
    keyId: row.key_id,
    appId: row.app_id,
    personId: row.person_id,
    model: row.model,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    metadata: JSON.parse(row.metadata),
    parameters: JSON.parse(row.parameters),
    completion: JSON.parse(row.completion),
  };
}
