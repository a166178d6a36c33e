// Reads and edits the top level of a JSON object as text, so that everything untouched stays byte for byte the same.

export interface Member {
  /** Offset of the member's opening quote. */
  keyStart: number;
  /** Offsets of its value: [valueStart, valueEnd). */
  valueStart: number;
  valueEnd: number;
}

export type Members = ReadonlyMap<string, Member>;

export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
}

/** How much a text may hold. */
export interface JsonLimits {
  /** Levels of objects and arrays. */
  depth: number;
  /** Members of the top-level object. */
  members: number;
  /** Named fields altogether. */
  names: number;
  /** Commas altogether: one less than the values of each array or object. */
  values: number;
}

const unlimited: JsonLimits = {
  depth: Number.POSITIVE_INFINITY,
  members: Number.POSITIVE_INFINITY,
  names: Number.POSITIVE_INFINITY,
  values: Number.POSITIVE_INFINITY,
};

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const colon = 0x3a;
const comma = 0x2c;

/**
 * Finds the members of the top-level object in one pass. Depth, mass and repeated names are refused here: deep nesting
 * before the parser recurses, millions of values before it builds them, repeated names because two parsers may pick
 * different ones, and what was checked would not be what the model server reads. Anything else that is wrong is left
 * for JSON.parse to refuse.
 */
export function scanObject(text: string, limits: JsonLimits = unlimited): Members {
  const members = new Map<string, Member>();
  let depth = 0;
  let isObject = false;
  let names = 0;
  let values = 0;
  let name: string | undefined;
  let keyStart = 0;
  let valueStart = -1;

  const endMember = (end: number) => {
    if (name === undefined || valueStart < 0) return;
    if (members.has(name)) {
      const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
      throw new JsonTextError(`the field \`${shown}\` appears twice; send it once`);
    }
    if (members.size >= limits.members) throw new JsonTextError(`it has more than ${limits.members} fields`);
    members.set(name, { keyStart, valueStart, valueEnd: trimEnd(text, valueStart, end) });
    name = undefined;
    valueStart = -1;
  };

  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code <= 0x20) continue;
    if (depth === 1 && name !== undefined && valueStart < 0 && code !== colon) valueStart = i;
    if (code === quote) {
      const end = endOfString(text, i);
      if (depth === 1 && name === undefined && isObject) {
        keyStart = i;
        name = unquote(text.slice(i, end));
      }
      i = end - 1;
    } else if (code === openBrace || code === 0x5b) {
      if (depth === 0) isObject = code === openBrace;
      depth++;
      if (depth > limits.depth) throw new JsonTextError(`the JSON is nested more than ${limits.depth} levels deep`);
    } else if (code === 0x7d || code === 0x5d) {
      if (depth === 1) {
        endMember(i);
        // A second document behind the first is for JSON.parse to refuse.
        return members;
      }
      depth--;
    } else if (code === comma) {
      if (++values > limits.values) throw new JsonTextError(`it holds more than ${limits.values} values`);
      if (depth === 1) endMember(i);
    } else if (code === colon && ++names > limits.names) {
      throw new JsonTextError(`it holds more than ${limits.names} named fields`);
    }
  }
  return members;
}

/**
 * Returns `text` with top-level members replaced or added (a string value is JSON text) or removed (null).
 * `members` must come from `scanObject` of the same text.
 */
export function editObject(text: string, members: Members, edits: Readonly<Record<string, string | null>>): string {
  const cuts: { start: number; end: number; insert: string }[] = [];
  let added = "";
  let removed = 0;
  for (const [name, value] of Object.entries(edits)) {
    const member = members.get(name);
    if (member === undefined) {
      if (value !== null) added += `${JSON.stringify(name)}:${value},`;
    } else if (value !== null) {
      cuts.push({ start: member.valueStart, end: member.valueEnd, insert: value });
    } else {
      removed++;
      cuts.push({ ...removalRange(text, member), insert: "" });
    }
  }
  let result = "";
  let position = 0;
  for (const cut of cuts.sort((a, b) => a.start - b.start)) {
    result += text.slice(position, cut.start) + cut.insert;
    position = cut.end;
  }
  result += text.slice(position);
  if (removed > 0) result = result.replace(/,(\s*\}\s*)$/, "$1");
  if (added === "") return result;
  const open = result.indexOf("{") + 1;
  if (members.size === removed) added = added.slice(0, -1);
  return result.slice(0, open) + added + result.slice(open);
}

/** A removed member takes the comma behind it along; the comma before the closing brace is mended by the caller. */
function removalRange(text: string, member: Member): { start: number; end: number } {
  let end = member.valueEnd;
  while (end < text.length && text.charCodeAt(end) <= 0x20) end++;
  return { start: member.keyStart, end: text.charCodeAt(end) === comma ? end + 1 : member.valueEnd };
}

/** Offset behind the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  for (let i = text.indexOf('"', start + 1); i >= 0; i = text.indexOf('"', i + 1)) {
    let slashes = 0;
    while (text.charCodeAt(i - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return i + 1;
  }
  return text.length;
}

/** A name may hide behind escapes (`"mod\u0065l"`); a malformed one is left to JSON.parse. */
function unquote(quoted: string): string {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted;
  }
}

function trimEnd(text: string, start: number, end: number): number {
  let last = end;
  while (last > start && text.charCodeAt(last - 1) <= 0x20) last--;
  return last;
}
