// Refuses members that newer versions of Anthropic's API no longer accept.
import { fieldError, type GatewayError } from "../../../base/errors.ts";
import { defaultMessageVersion, type MessageVersion } from "../../../domain/models/message-headers.ts";
import { isObject, type Json, objectsOf } from "./json.ts";

/** Sampling members that Anthropic refuses even with their default values. */
const sampling = ["temperature", "top_p", "top_k"];

/**
 * Checks a request body. If this version does not allow one of its members, throws `invalid_request`, which names the
 * field (platform.claude.com/docs/en/api/migration-2026-10-21). The rules are the same for every model and server.
 */
export function requireVersion(body: Json, version: MessageVersion): void {
  if (version === defaultMessageVersion) return;
  for (const name of sampling) {
    if (body[name] !== undefined)
      throw gone(name, version, "models choose by themselves how they sample; leave it out");
  }
  for (const [index, { role, content }] of listOf(body["messages"]).entries()) {
    for (const [at, block] of objectsOf(content).entries()) {
      const place = `messages[${index}].content[${at}]`;
      if (role === "assistant" && block["type"] === "document") {
        throw gone(`${place}.type`, version, "a document stands in a message of the user, or in the result of a tool");
      }
      const { citations } = block;
      if (role === "user" && block["type"] === "text" && Array.isArray(citations) && citations.length > 0) {
        throw gone(`${place}.citations`, version, "citations stand in messages of the assistant alone; leave them out");
      }
    }
  }
}

function gone(param: string, version: MessageVersion, fix: string): GatewayError {
  return fieldError(
    param,
    `is not taken in anthropic-version ${version}: ${fix}, or send anthropic-version ${defaultMessageVersion}.`,
  );
}

function listOf(messages: unknown): readonly Json[] {
  return Array.isArray(messages) ? messages.map((message) => (isObject(message) ? message : {})) : [];
}
