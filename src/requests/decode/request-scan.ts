// Scans the bytes of a request once. The scan checks that they are JSON of the right shape, counts the tokens of the
// prompt, and records the positions of members.
import {
  afterColon,
  afterName,
  afterNumber,
  afterSpace,
  afterString,
  afterWord,
  bytes,
  closeBrace,
  closeBracket,
  comma,
  fault,
  isPlainName,
  isPlainWithBareHash,
  isSame,
  numberPassed,
  passed,
  quote,
} from "../../base/text/json-bytes.ts";
import { mediaTypes } from "../dialects/conversation/shown-tokens.ts";
import { estimateTokens, mediaTokens } from "../dialects/prompt-tokens.ts";
import { BodyNotes } from "./body-notes.ts";
import { anyValue } from "./compile-rule.ts";
import { kindAt } from "./kind-at.ts";
import {
  type ArrayRule,
  arrayKind,
  falseKind,
  fitsAnyNumber,
  type MemberRule,
  nullKind,
  numberKind,
  type ObjectRule,
  objectKind,
  type TagRule,
  type TextRule,
  textKind,
  trueKind,
  type ValueRule,
} from "./rule.ts";

/**
 * Limits of the byte scan. A body with deeper nesting, or with more names in one object or in all open objects, is
 * parsed completely.
 */
const deepest = 64;
const maxNamesEach = 64;
const maxNamesOpen = 1_024;
/** Hashes of the names in all open objects, to detect duplicate names. */
const hashes = new Int32Array(maxNamesOpen);
let open = 0;

/** Running counts of the current scan. */
const counts = { names: 0, containers: 0, items: 0 };

/** The result of the current scan. All scans use the same object. */
const notes = new BodyNotes();

/** The limits that apply to the current text. */
const limit = { depth: 0, names: 0, containers: 0 };

/**
 * Returns the facts of the loaded text, or undefined if the text must be parsed completely. The facts are valid until
 * the next text is loaded. A complete parse is needed for wrong JSON, for a wrong shape, for excessive depth, and for
 * too many members. It is also needed for duplicate, escaped or ambiguous names, and for a prompt whose tokens the scan
 * cannot count. Bytes above 127 are not checked. `length` is the length of the text in bytes. `depth` and `mass` limit
 * levels, names and containers, because a later parser needs many times their bytes. A text within these limits cannot
 * have too many values.
 */
export function scanBody(
  rule: ValueRule,
  length: number,
  depth: number,
  mass: { readonly names: number; readonly containers: number },
): BodyNotes | undefined {
  limit.depth = Math.min(depth, deepest);
  limit.names = mass.names;
  limit.containers = mass.containers;
  notes.clear();
  counts.names = counts.containers = open = 0;
  const start = afterSpace(0);
  if (kindAt(start) !== objectKind) return undefined;
  const end = afterObject(rule, start, 1);
  return end !== fault && afterSpace(end) === length ? notes : undefined;
}

function afterValue(rule: ValueRule, at: number, depth: number): number {
  switch (kindAt(at)) {
    case textKind:
      return afterText(rule, at);
    case numberKind: {
      const end = afterNumber(at);
      if (!rule.readsAnything && !fitsAnyNumber(rule.numbers, numberPassed())) return fault;
      if (rule.isPrompt) notes.promptTokens++;
      return end;
    }
    case objectKind:
      return afterObject(rule, at, depth);
    case arrayKind:
      return afterArray(rule, at, depth);
    case trueKind:
      if (rule.isShown) notes.promptTokens++;
      return rule.allowsTrue ? afterWord("true", at) : fault;
    case falseKind:
      if (rule.isShown) notes.promptTokens++;
      return rule.allowsFalse ? afterWord("false", at) : fault;
    case nullKind:
      return rule.allowsNull ? afterWord("null", at) : fault;
    default:
      return fault;
  }
}

function afterText(rule: ValueRule, at: number): number {
  const escapes = passed.escapes;
  const end = afterString(at);
  if (end === fault) return fault;
  if (!rule.readsAnything && !fitsAnyText(rule.texts, at + 1, end - 1)) return fault;
  if (rule.isType && (passed.escapes !== escapes || isMediaType(at + 1, end - 1))) return fault;
  if (rule.isPrompt) notes.promptTokens += estimateTokens(end - at - 2 - (passed.escapes - escapes));
  return end;
}

const mediaNames = [...mediaTypes].map((type) => Buffer.from(String(type)));

function isMediaType(start: number, end: number): boolean {
  for (let i = 0; i < mediaNames.length; i++) if (isSame(mediaNames[i] as Uint8Array, start, end)) return true;
  return false;
}

function fitsAnyText(rules: readonly TextRule[], start: number, end: number): boolean {
  for (let i = 0; i < rules.length; i++) if (fitsText(rules[i] as TextRule, start, end)) return true;
  return false;
}

function fitsText({ least, maxBytes, written }: TextRule, start: number, end: number): boolean {
  if (written === undefined) return end - start >= least && end - start <= maxBytes;
  for (let i = 0; i < written.length; i++) if (isSame(written[i] as Uint8Array, start, end)) return true;
  return false;
}

function afterArray(rule: ValueRule, start: number, depth: number): number {
  const { arrays } = rule;
  if (arrays === undefined || depth > limit.depth || ++counts.containers > limit.containers) return fault;
  let at = afterSpace(start + 1);
  const { least, most, items } = arrays[kindAt(at)] as ArrayRule;
  let count = 0;
  if (bytes[at] !== closeBracket) {
    for (; ; at = afterSpace(at + 1)) {
      at = afterValue(items, at, depth + 1);
      if (at === fault) return fault;
      count++;
      at = afterSpace(at);
      if (bytes[at] !== comma) break;
    }
    if (bytes[at] !== closeBracket) return fault;
  }
  counts.items = count;
  return count >= least && count <= most ? at + 1 : fault;
}

function afterObject({ object, tag }: ValueRule, start: number, depth: number): number {
  if (depth > limit.depth || ++counts.containers > limit.containers) return fault;
  const rule = tag === undefined ? object : taggedRule(tag, start, depth);
  if (rule === undefined || !rule.isReadable) return fault;
  if (rule.isMedia) {
    notes.promptTokens += mediaTokens;
    notes.hasMedia = true;
  }
  const firstName = open;
  let missing = rule.required.length;
  let isIdentified = !rule.isIdentified;
  let at = afterSpace(start + 1);
  if (bytes[at] !== closeBrace) {
    for (; ; at = afterSpace(at + 1)) {
      const nameStart = at;
      const nameEnd = afterName(at);
      if (nameEnd === fault || !isNewName(firstName, passed.hash)) return fault;
      const member = rule.find(passed.hash, at + 1, nameEnd - 1);
      if (rule.names !== undefined && !fitsAnyText(rule.names.texts, at + 1, nameEnd - 1)) return fault;
      const value = afterColon(nameEnd);
      if (value === fault) return fault;
      if (member === undefined) {
        if (rule.isNamed && !isClearName(rule, at + 1, nameEnd - 1)) return fault;
        const { other } = rule;
        const isCounted = other.isJson || other.isShown;
        at = isCounted ? afterMember(other, value, depth + 1) : afterValue(other.value, value, depth + 1);
        if (depth === 1) notes.addUnknown(nameStart, at);
      } else {
        if (member.identifies) isIdentified ||= kindAt(value) !== nullKind;
        at = afterMember(member, value, depth + 1);
        if (member.isRequired) missing--;
      }
      if (at === fault) return fault;
      at = afterSpace(at);
      if (bytes[at] !== comma) break;
    }
    if (bytes[at] !== closeBrace) return fault;
  }
  open = firstName;
  return missing === 0 && isIdentified ? at + 1 : fault;
}

/** Reports whether no parser would read this unknown name as a known one. */
function isClearName(rule: ObjectRule, start: number, end: number): boolean {
  return rule.isDecisive ? isPlainWithBareHash(start, end) && !rule.mayDecide(passed.hash) : isPlainName(start, end);
}

/**
 * Reports whether the name occurs for the first time in the object whose names begin at index `first`. Two different
 * names with the same hash count as equal, so that the body is parsed completely.
 */
function isNewName(first: number, hash: number): boolean {
  if (open - first === maxNamesEach || open === maxNamesOpen || ++counts.names > limit.names) return false;
  for (let i = first; i < open; i++) if (hashes[i] === hash) return false;
  hashes[open++] = hash;
  return true;
}

function afterMember({ value, isJson, isShown, note }: MemberRule, start: number, depth: number): number {
  const { space, unusual } = passed;
  const end = afterValue(value, start, depth);
  if (end === fault) return fault;
  if (isShown) notes.promptTokens++;
  if (isJson && kindAt(start) !== nullKind) {
    // The tokens can only be counted if the text is written exactly as JSON.stringify would write it.
    if (passed.unusual !== unusual) return fault;
    notes.promptTokens += estimateTokens(end - start - (passed.space - space));
  }
  if (note >= 0) notes.add(note, start, end, counts.items);
  return end;
}

/**
 * Returns the rule of the object at `start`, which the tag member decides. The tag is usually the first member. Members
 * before it are read again later, and only then counted.
 */
function taggedRule(tag: TagRule, start: number, depth: number): ObjectRule | undefined {
  const { space, unusual } = passed;
  const { names, containers } = counts;
  let result: ObjectRule | undefined;
  for (let at = afterSpace(start + 1); ; at = afterSpace(at + 1)) {
    const nameEnd = afterName(at);
    if (nameEnd === fault) return undefined;
    const isTag = passed.hash === tag.hash && isSame(tag.bytes, at + 1, nameEnd - 1);
    const value = afterColon(nameEnd);
    if (value === fault) return undefined;
    if (isTag) {
      result = taggedBy(tag, value);
      break;
    }
    at = afterValue(anyValue, value, depth + 1);
    if (at === fault) return undefined;
    at = afterSpace(at);
    if (bytes[at] !== comma) return undefined;
  }
  passed.space = space;
  passed.unusual = unusual;
  counts.names = names;
  counts.containers = containers;
  return result;
}

function taggedBy({ written }: TagRule, start: number): ObjectRule | undefined {
  const end = bytes[start] === quote ? afterString(start) : fault;
  if (end === fault) return undefined;
  for (const { value, rule } of written) if (isSame(value, start + 1, end - 1)) return rule;
  return undefined;
}
