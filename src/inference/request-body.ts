// Builds the request body for an engine from the client's bytes, with a few members changed.
import { type Bytes, type Patch, patched } from "../base/bytes/byte-span.ts";
import { editObject } from "../base/text/json-text.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import { modelNameJson } from "../requests/dialects/model-names.ts";
import type { IsolatedEdits } from "./isolation.ts";

const usageMember = Buffer.from(',"stream_options":{"include_usage":true}');
const notKeptMember = Buffer.from('"store":false,');
const nothing = Buffer.alloc(0);
const openingBrace = 0x7b;

/**
 * Returns the body for an engine: the client's bytes with changed members. Changed are the model id, the request for
 * usage, storage, corrections, opened members (`Dialect.opened`) and isolated members (`isolation.ts`). `asksForUsage`
 * is false for a server that refuses the request for usage.
 */
export function rewriteRequest(
  request: DecodedRequest,
  engineModel: string,
  recording: boolean,
  opened?: Readonly<Record<string, string | null>>,
  isolated?: IsolatedEdits,
  asksForUsage = true,
): string | Bytes {
  const isRenamed = engineModel !== request.model;
  const isUsageAdded = asksForUsage && addsUsage(request);
  const isPlain = request.corrections === undefined || request.omitsStore;
  if (isPlain && !opened && (!recording || request.dialect.isStoredByDefault)) {
    const patches = patchesOf(request, isRenamed ? engineModel : undefined, isUsageAdded, isolated);
    if (patches) return patched(request.bytes, patches);
  }
  const edits: Record<string, string | null> = { ...request.corrections, ...opened, ...isolated };
  if (isRenamed) edits["model"] = JSON.stringify(engineModel);
  if (isUsageAdded) {
    const options = request.body["stream_options"] as object | null | undefined;
    edits["stream_options"] = JSON.stringify({ ...options, include_usage: true });
  }
  // For servers that store answers by default, the corrections already switch storage off.
  if (recording && !request.dialect.isStoredByDefault)
    for (const name of ["store", "metadata"]) if (request.members.get(name)) edits[name] = null;
  return Object.keys(edits).length === 0 ? request.bytes : editObject(request.text, request.members, edits);
}

/** Reports whether the request for usage must be added to the body. */
export function addsUsage({ dialect, stream, streamOptions }: DecodedRequest): boolean {
  return dialect.asksForUsage && stream && streamOptions !== "usage";
}

/** Returns the changes as patches of the client's bytes. Returns undefined if that is impossible. */
function patchesOf(
  request: DecodedRequest,
  engineModel: string | undefined,
  addsUsage: boolean,
  isolated: IsolatedEdits | undefined,
): Patch[] | undefined {
  const { bytes, corrections, modelStart, modelEnd, streamOptions } = request;
  const patches: Patch[] = [];
  let first = corrections === undefined ? undefined : notKeptMember;
  if (isolated) {
    if (modelEnd === 0) return undefined;
    for (const [name, json] of Object.entries(isolated)) {
      // A patch cannot remove a member, because the comma beside the member must be removed too.
      if (json === null) return undefined;
      const member = request.isolating?.find((one) => one.name === name);
      if (member) patches.push({ from: member.start, to: member.end, insert: Buffer.from(json) });
      else first = Buffer.concat([Buffer.from(`"${name}":${json},`), first ?? nothing]);
    }
  }
  if (first) {
    const within = bytes.buffer.indexOf(openingBrace, bytes.start) + 1 - bytes.start;
    patches.push({ from: within, to: within, insert: first });
  }
  if (engineModel !== undefined || addsUsage) {
    if (modelEnd === 0 || (addsUsage && streamOptions !== "none")) return undefined;
    patches.push(modelPatch(modelStart, modelEnd, engineModel, addsUsage));
  }
  return patches.length < 2 ? patches : patches.sort((a, b) => a.from - b.from);
}

function modelPatch(start: number, end: number, engineModel: string | undefined, addsUsage: boolean): Patch {
  if (engineModel === undefined) return { from: end, to: end, insert: usageMember };
  const model = modelNameJson(engineModel);
  return { from: start, to: end, insert: addsUsage ? Buffer.concat([model, usageMember]) : model };
}
