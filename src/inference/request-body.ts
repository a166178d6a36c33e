// The body that an engine gets of a request: the client's own bytes, but where something must differ.
import { type Bytes, PatchedSpan } from "../base/bytes/byte-span.ts";
import { editObject } from "../base/text/json-text.ts";
import { modelNameJson } from "../dialects/model-names.ts";
import type { DecodedRequest } from "./decoded-request.ts";

const usageMember = Buffer.from(',"stream_options":{"include_usage":true}');

/**
 * The body for an engine: the client's own bytes, except where `model` has another id there, where usage must be asked
 * for (it is always counted), where the gateway keeps the completion itself, and where a member has to be corrected, or opened (`Dialect.opened`).
 */
export function rewriteRequest(
  request: DecodedRequest,
  engineModel: string,
  recording: boolean,
  opened?: Readonly<Record<string, string>>,
): string | Bytes {
  const isRenamed = engineModel !== request.model;
  const addsUsage = request.dialect.asksForUsage && request.stream && request.streamOptions !== "usage";
  if (!recording && request.corrections === undefined && !opened) {
    if (!isRenamed && !addsUsage) return request.bytes;
    const { bytes, modelStart, modelEnd } = request;
    // The usual changes are made to the bytes, where it is known where the id stands.
    if (modelEnd > 0 && (!addsUsage || request.streamOptions === "none")) {
      const model = modelNameJson(engineModel);
      return new PatchedSpan(bytes, modelStart, modelEnd, addsUsage ? Buffer.concat([model, usageMember]) : model);
    }
  }
  const edits: Record<string, string | null> = { ...request.corrections, ...opened };
  if (isRenamed) edits["model"] = JSON.stringify(engineModel);
  if (addsUsage) {
    const options = request.body["stream_options"] as object | null | undefined;
    edits["stream_options"] = JSON.stringify({ ...options, include_usage: true });
  }
  // Where servers keep answers unless they are told not to, that is among the corrections.
  if (recording && !request.dialect.isKeptUnlessTold)
    for (const name of ["store", "metadata"]) if (request.members.get(name)) edits[name] = null;
  return Object.keys(edits).length === 0 ? request.bytes : editObject(request.text, request.members, edits);
}
