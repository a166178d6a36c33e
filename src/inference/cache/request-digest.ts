// Computes a digest of everything that affects the answer. Requests with the same digest get the same cached answer.
import { endOfString } from "../../base/text/json-text.ts";
import type { Model } from "../../domain/models/model.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";

/**
 * Version of the digest. Increase it when the digested content changes, so that answers cached earlier are not found.
 */
const version = "1";

/** Request members that never affect the answer. They concern, for example, accounting or storage. */
const withoutEffect: ReadonlySet<string> = new Set([
  ...["model", "stream", "store"],
  ...["user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"],
]);
/**
 * Request members that are ignored in Responses requests. There are fewer, because a response repeats the members of
 * its request.
 */
const withoutEffectUnrepeated: ReadonlySet<string> = new Set(["model", "stream", "store"]);

export interface DigestedRequest {
  readonly request: DecodedRequest;
  readonly model: Model;
  readonly accountId: string;
  readonly environment: string;
}

/**
 * Returns the HMAC-SHA-256 of the request under `key`, in hexadecimal. The order of top-level members does not matter.
 * Within values the order matters, because models see tools and schemas as they were sent. White space matters only in
 * very long values. `replaced` is a member whose value is replaced for this digest.
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
/**
 * Characters of a value above which its white space matters, because removing the white space would block other
 * requests.
 */
const longValue = 256 * 1024;

function valueIn(text: string, start: number, end: number): string {
  return end - start > longValue ? text.slice(start, end) : withoutBlanks(text, start, end);
}

/** Returns the JSON text in this range, without white space between its tokens. */
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

/** Reports whether the answer is the same each time: at temperature 0, or if no text is generated. */
export function isDeterministic({ dialect, text, members }: DecodedRequest): boolean {
  if (!dialect.generates) return true;
  const temperature = members.get("temperature");
  return temperature !== undefined && Number(text.slice(temperature.valueStart, temperature.valueEnd)) === 0;
}

/** Reports whether the prompt refers to a URL or file id, whose content may change. */
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

/** Members that contain media or their URL, in any format. */
const mediaMembers: ReadonlySet<string> = new Set([
  ...["image_url", "video_url", "audio_url", "file_url", "file", "source", "image", "video", "audio"],
]);
