// Parses JSON from a model server. It is an answer, or an error in place of an answer.
import { GatewayError } from "../../../base/errors.ts";
import type { Serving } from "../answer.ts";
import { hasFault, reportedFault } from "../engine-fault.ts";

export type Json = Readonly<Record<string, unknown>>;

/**
 * Parses an answer. Throws `upstream_error` if the text is no JSON object. For an error, throws what `reportedFault`
 * returns.
 */
export function parsedAnswer(text: string, serving: Serving | undefined): Json {
  const value = parsed(text);
  if (hasFault(value)) throw reportedFault(text, serving?.deployment.engine, "The model server failed.");
  return value;
}

function parsed(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  } catch {
    // Invalid JSON is reported below, in the same way as a value that is no object.
  }
  throw new GatewayError("upstream_error", "The model server sent a malformed event.", {
    detail: `${text.length} characters that are no JSON object`,
  });
}
