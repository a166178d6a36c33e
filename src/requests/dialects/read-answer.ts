// Types of an answer that was read as a whole, and helpers to edit its JSON.
import type { Bytes } from "../../base/bytes/byte-span.ts";
import { editObject, scanObject } from "../../base/text/json-text.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { Answer } from "./answer.ts";
import { malformed } from "./malformed.ts";

export class ReadAnswer implements Answer {
  readonly body: Bytes | string;
  readonly usage: TokenUsage;

  constructor(body: Bytes | string, usage: TokenUsage) {
    this.body = body;
    this.usage = usage;
  }

  get text(): string {
    return typeof this.body === "string" ? this.body : this.body.solid.text;
  }
}

/** Returns the text with the values of these members replaced. Throws `upstream_error` if the text cannot be edited. */
export function edited(text: string, edits: Readonly<Record<string, string | null>>): string {
  try {
    return editObject(text, scanObject(text), edits);
  } catch {
    // The caught error may quote the answer, so the thrown error does not contain it.
    throw malformed("JSON that cannot be edited: a field appears twice, or there is too much of it");
  }
}

/** Parses a JSON object. Throws `upstream_error` if the text is not a JSON object. */
export function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Invalid JSON is reported below, in the same way as a value that is no object.
  }
  throw malformed(`${text.length} characters that are no JSON object`);
}
