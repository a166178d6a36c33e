// What of a request an answer depends on, as a digest: two that have the same get the same answer.
import { endOfString } from "../../base/text/json-text.ts";
import type { Model } from "../../domain/models/model.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";

/** Raised where what goes into a digest changes: what was kept by another rule is not found. */
const version = "1";

/** Told of who asks and how it is counted, kept or sent, and nothing of what is answered. */
const withoutEffect: ReadonlySet<string> = new Set([
  ...["model", "stream", "store"],
  ...["user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"],
]);
/** A response repeats what its request says of those, so there they matter. */
const withoutEffectUnrepeated: ReadonlySet<string> = new Set(["model", "stream", "store"]);

export interface DigestedRequest {
  readonly request: DecodedRequest;
  readonly model: Model;
  readonly accountId: string;
  readonly environment: string;
}

/**
 * Hex HMAC-SHA-256 under `key`. The order of members at the top and blanks between values do not matter; below the top the
 * order does, as models are shown tools and schemas as they stand; so do blanks in values that are very long. `replaced`: what stands in place of a member.
 */
export function requestDigest(
  { request, model, accountId, environment }: DigestedRequest,
  key: Uint8Array,
  replaced?: { readonly name: string; readonly text: string },
): string {
  const { text, members, dialect, stream, messageHeaders } = request;
  const hasher = new Bun.CryptoHasher("sha256", key);
  const served = [...new Set(model.deployments.map((one) => one.model))].sort();
  const around = [version, accountId, environment, model.id, request.operation, stream, served, messageHeaders ?? null];
  hasher.update(JSON.stringify(around));
  const unneeded = dialect.kept?.as === "response" ? withoutEffectUnrepeated : withoutEffect;
  const names = [...members.keys()].filter((name) => !unneeded.has(name)).sort();
  for (const name of names) {
    const member = members.get(name);
    if (!member) continue;
    hasher.update(`,${JSON.stringify(name)}:`);
    hasher.update(name === replaced?.name ? replaced.text : valueIn(text, member.valueStart, member.valueEnd));
  }
  return hasher.digest("hex");
}

const blanks = /[\t\n\r ]+/g;
/** Characters of a value from which on it counts as it stands: looking for its blanks would keep everybody waiting. */
const longValue = 256 * 1024;

function valueIn(text: string, start: number, end: number): string {
  return end - start > longValue ? text.slice(start, end) : withoutBlanks(text, start, end);
}

/** The JSON value that stands there without what may stand between its parts. */
function withoutBlanks(text: string, start: number, end: number): string {
  let compact = "";
  for (let at = start; at < end; ) {
    const quote = text.indexOf('"', at);
    const stop = quote < 0 || quote > end ? end : quote;
    compact += text.slice(at, stop).replace(blanks, "");
    if (stop === end) break;
    at = endOfString(text, quote);
    compact += text.slice(quote, at);
  }
  return compact;
}

/** Whether its model is asked for the likeliest answer, or for what comes out the same each time. */
export function isDeterministic({ dialect, text, members }: DecodedRequest): boolean {
  if (!dialect.generates) return true;
  const temperature = members.get("temperature");
  return temperature !== undefined && Number(text.slice(temperature.valueStart, temperature.valueEnd)) === 0;
}

/** Reports whether what a model sees stands behind an address or a file's id, and so may change, or go, meanwhile. */
export function hasRemoteMedia({ dialect, hasMedia, body }: DecodedRequest): boolean {
  return hasMedia && isRemote(body[dialect.promptMember], false);
}

function isRemote(value: unknown, isMedia: boolean): boolean {
  if (typeof value === "string") return isMedia && /^https?:/i.test(value);
  if (Array.isArray(value)) return value.some((item) => isRemote(item, isMedia));
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, member]) => {
    if (name === "file_id") return member !== null;
    return isRemote(member, isMedia || mediaMembers.has(name));
  });
}

/** Members that hold media, or their address, in the parts of all formats. */
const mediaMembers: ReadonlySet<string> = new Set([
  ...["image_url", "video_url", "audio_url", "file_url", "file", "source", "image", "video", "audio"],
]);
