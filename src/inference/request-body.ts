// The body that an engine gets of a request: the client's own bytes, but where something must differ.
import { type Bytes, type Patch, patched } from "../base/bytes/byte-span.ts";
import { editObject } from "../base/text/json-text.ts";
import { modelNameJson } from "../dialects/model-names.ts";
import type { DecodedRequest } from "./decoded-request.ts";

const usageMember = Buffer.from(',"stream_options":{"include_usage":true}');
const notKeptMember = Buffer.from('"store":false,');
const openingBrace = 0x7b;

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
  const isPlain = request.corrections === undefined || request.leavesStoreUnsaid;
  if (isPlain && !opened && (!recording || request.dialect.isKeptUnlessTold)) {
    const patches = patchesOf(request, isRenamed ? engineModel : undefined, addsUsage);
    if (patches) return patched(request.bytes, patches);
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

/** The usual changes, made to the bytes; undefined where it is not known where they belong. */
function patchesOf(
  { bytes, corrections, modelStart, modelEnd, streamOptions }: DecodedRequest,
  engineModel: string | undefined,
  addsUsage: boolean,
): Patch[] | undefined {
  const patches: Patch[] = [];
  if (corrections !== undefined) {
    const within = bytes.buffer.indexOf(openingBrace, bytes.start) + 1 - bytes.start;
    patches.push({ from: within, to: within, insert: notKeptMember });
  }
  if (engineModel === undefined && !addsUsage) return patches;
  if (modelEnd === 0 || (addsUsage && streamOptions !== "none")) return undefined;
  if (engineModel === undefined) patches.push({ from: modelEnd, to: modelEnd, insert: usageMember });
  else {
    const model = modelNameJson(engineModel);
    patches.push({ from: modelStart, to: modelEnd, insert: addsUsage ? Buffer.concat([model, usageMember]) : model });
  }
  return patches;
}
