// What an engine sends, as JSON: an answer, or an error in the place of one.
import { GatewayError } from "../../../base/errors.ts";
import type { Serving } from "../answer.ts";
import { tellsFault, toldFault } from "../engine-fault.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Throws `upstream_error` for what is no JSON object, and, for what is an error, that (`toldFault`). */
export function parsedAnswer(text: string, serving: Serving | undefined): Json {
  const value = parsed(text);
  if (tellsFault(value)) throw toldFault(text, serving?.deployment.engine, "The model server failed.");
  return value;
}

function parsed(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  } catch {
    // Falls through: the same refusal for what is no JSON and what is no object.
  }
  throw new GatewayError("upstream_error", "The model server sent a malformed event.", {
    detail: `${text.length} characters that are no JSON object`,
  });
}
