// Writes a conversation to a file that a person named.
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { CliError, printableText } from "../terminal/terminal.ts";
import type { ChatMessage } from "./chat-request.ts";

const speakers: Record<ChatMessage["role"], string> = { system: "Instructions", user: "You", assistant: "Model" };

/**
 * Saves the conversation to a new file that only its owner can read, because conversations are private. Returns the
 * absolute path. Rejects with a CliError, also if the file exists.
 */
export async function saveConversation(name: string, model: string, messages: readonly ChatMessage[]): Promise<string> {
  if (name === "") throw new CliError("Name a file: /save talk.md");
  if (messages.length === 0) throw new CliError("There is nothing to save yet.");
  const path = resolve(name);
  const parts = messages.map(({ role, content }) => `## ${speakers[role]}\n\n${printableText(content)}`);
  const text = name.endsWith(".json")
    ? JSON.stringify({ model, messages }, undefined, 2)
    : [`# Conversation with ${model}`, ...parts].join("\n\n");
  try {
    await writeFile(path, `${text}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    if (code === "EEXIST") throw new CliError(`${path} exists already. Choose another name.`);
    throw new CliError(`${path} cannot be written (${code}). Choose another place.`);
  }
  return path;
}
