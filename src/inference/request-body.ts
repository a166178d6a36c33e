// The body that an engine gets of a request: the client's own bytes, but where something must differ.
import { editObject } from "../domain/json-text.ts";
import type { DecodedRequest } from "./decoded-request.ts";

/**
 * The body for an engine: the client's own bytes, except where `model` has another id there, where usage must be asked
 * for (it is always counted), where the gateway keeps the completion itself, and where both names of the token limit were sent.
 */
export function rewriteRequest(request: DecodedRequest, engineModel: string, recording: boolean): string | Uint8Array {
  const { body, operation } = request;
  const edits: Record<string, string | null> = {};
  if (engineModel !== body["model"]) edits["model"] = JSON.stringify(engineModel);
  if (request.stream && operation !== "embedding") {
    const options = body["stream_options"] as { include_usage?: unknown } | null | undefined;
    if (options?.include_usage !== true) {
      edits["stream_options"] = JSON.stringify({ ...options, include_usage: true });
    }
  }
  if (recording) for (const name of ["store", "metadata"]) if (body[name] !== undefined) edits[name] = null;
  const limit = body["max_completion_tokens"];
  if (limit !== undefined && limit !== null && body["max_tokens"] !== undefined) edits["max_tokens"] = null;
  return Object.keys(edits).length === 0 ? request.bytes : editObject(request.text, request.members, edits);
}
