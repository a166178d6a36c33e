// Schemas of stored chats: the requests and answers of their endpoints. Also the limits of metadata.
import { z } from "zod";
import { fieldError } from "../base/errors.ts";
import type { StoredChat } from "../domain/models/stored-chat.ts";
import { chatCompletion } from "./chat.ts";

const maxMetadataPairs = 16;
const maxNameLength = 64;
const maxValueLength = 512;

/** The metadata of a stored object (OpenAI API reference, "metadata"). `requireMetadata` checks the number of pairs. */
export const metadata = z
  .record(z.string().max(maxNameLength), z.string().max(maxValueLength))
  .describe("Up to 16 labels, with names of at most 64 characters and values of at most 512.");

export const metadataUpdate = z
  .object({ metadata: metadata.nullable().describe("Replaces all labels. null removes them.") })
  .meta({ id: "StoredChatUpdate" });

const orNull = (schema: z.ZodType) => schema.nullish();

export const storedChat = chatCompletion
  .extend({
    request_id: z.string().describe("`x-request-id` of the request that created the completion."),
    metadata: z.record(z.string(), z.string()),
    input_user: orNull(z.string()).describe("`user` of the request."),
    temperature: orNull(z.number()),
    top_p: orNull(z.number()),
    presence_penalty: orNull(z.number()),
    frequency_penalty: orNull(z.number()),
    seed: orNull(z.number()),
    tools: orNull(z.array(z.looseObject({}))),
    tool_choice: orNull(z.union([z.string(), z.looseObject({})])),
    response_format: orNull(z.looseObject({})),
  })
  .meta({
    id: "StoredChatCompletion",
    description: "The completion, its labels, and the parameters of its request without the messages.",
  });

export const storedMessage = z
  .looseObject({
    id: z.string(),
    role: z.string(),
    content: z.string().nullable().describe("null if the request had an array of parts."),
    content_parts: z.array(z.looseObject({})).nullable().describe("Content parts. null if the content was a string."),
  })
  .meta({ id: "StoredChatMessage" });

export const deletedChat = z
  .object({ id: z.string(), object: z.literal("chat.completion.deleted"), deleted: z.literal(true) })
  .meta({ id: "DeletedChatCompletion" });

/** Parameters that OpenAI's API returns even if the request did not contain them. */
const shownParameters = {
  temperature: null,
  top_p: null,
  presence_penalty: null,
  frequency_penalty: null,
  seed: null,
  tools: null,
  tool_choice: null,
  response_format: null,
  service_tier: null,
};

/** Returns the id that the completion of this request gets if it is stored. */
export function chatIdOf(requestId: string): string {
  return `chatcmpl-${requestId.replace(/^req_/, "")}`;
}

export function storedChatToWire(chat: StoredChat): { id: string; [member: string]: unknown } {
  const { user, ...parameters } = chat.parameters;
  return {
    ...shownParameters,
    ...parameters,
    ...chat.completion,
    id: chat.id,
    request_id: chat.id.replace(/^chatcmpl-/, "req_"),
    input_user: user ?? null,
    metadata: chat.metadata,
  };
}

/** Returns the messages with ids. The end of each id is the position of the message in the request. */
export function storedMessagesToWire(
  chatId: string,
  messages: readonly unknown[],
): { id: string; [member: string]: unknown }[] {
  return messages.map((message, index) => {
    const { content, ...rest } = message as { content?: unknown };
    const isText = typeof content === "string";
    return {
      ...rest,
      id: `${chatId}-${index}`,
      content: isText ? content : null,
      content_parts: isText ? null : (content ?? null),
    };
  });
}

/**
 * Returns the labels in `field`, or no labels if it is null. Throws `invalid_request`, whose message names the fault
 * but no value, because values may be private.
 */
export function requireMetadata(given: unknown, field = "metadata"): Readonly<Record<string, string>> {
  if (given === undefined || given === null) return {};
  const pairs = Object.entries(given);
  if (pairs.length > maxMetadataPairs) {
    throw fieldError(field, `must have at most ${maxMetadataPairs} names (got ${pairs.length}).`);
  }
  for (const [name, value] of pairs) {
    if (name.length > maxNameLength) {
      const shown = `${name.slice(0, maxNameLength)}…`;
      throw fieldError(
        `${field}[${shown}]`,
        `its name must have at most ${maxNameLength} characters (got ${name.length}).`,
      );
    }
    if (typeof value !== "string" || value.length > maxValueLength) {
      const got = typeof value === "string" ? `${value.length} characters` : "no string";
      throw fieldError(`${field}[${name}]`, `must be a string of at most ${maxValueLength} characters (got ${got}).`);
    }
  }
  return given as Readonly<Record<string, string>>;
}
