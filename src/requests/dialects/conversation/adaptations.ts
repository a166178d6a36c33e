// Changes a translated body for a model server that refuses a member of it.
import { type ErrorWords, errorWords, MemberName } from "./error-words.ts";

type Json = Record<string, unknown>;

/** A member that a server may refuse, although the answer does not depend on it. */
export interface OptionalMember {
  /** Path in the body. `*` stands for each entry of a list, a leading `**` for any depth. */
  readonly path: string;
  /** The name for clients in `x-headrace-ignored`; absent if no client sends such a member. */
  readonly ignored?: string;
  /** Returns the part of a value that servers refuse; absent if they refuse the member as a whole. */
  readonly refusedValue?: (value: unknown) => string | undefined;
  /** The only value that may be left out; absent if each may be. */
  readonly only?: string | number | boolean;
  /** True if the client writes the value, which the server may refuse in this request alone. */
  readonly isOfClient?: true;
  /** True if a refusal of one place says nothing of the others, so that later requests are written as before. */
  readonly isOnce?: true;
  /** True if other requests keep the member until the server has answered a request without it. */
  readonly isKeptInTrial?: true;
  /** Words of errors that mean the member without naming it. */
  readonly words?: RegExp;
  /** Removes what makes no sense without the member. */
  readonly tidy?: (body: Json) => void;
}

/** A change that keeps the meaning of the body, for servers with a rule of their own. */
export interface Rewrite {
  readonly name: string;
  /** The name for clients in `x-headrace-ignored`, if something is lost. */
  readonly ignored?: string;
  /** True if the server refused a value of this request alone, so that later requests are written as before. */
  readonly isOnce?: true;
  /** Words of the error that asks for the change. */
  readonly words: RegExp;
  /** Returns whether the body was changed. */
  readonly rewrite: (body: Json) => boolean;
}

export type Adaptation = OptionalMember | Rewrite;

export interface AdaptedBody {
  readonly body: string;
  /** Names of the client's members that were left out. */
  readonly leftOut: readonly string[];
}

/**
 * Returns the adaptation for a strict tool whose schema the server refuses, with these words. Without `strict`, servers
 * take any schema.
 */
export function looseSchemas(words: RegExp): Rewrite {
  const loosen = (tools: unknown): boolean[] =>
    (Array.isArray(tools) ? tools : []).filter(isObject).flatMap((tool) => {
      const described = isObject(tool["function"]) ? tool["function"] : tool;
      const isStrict = described["strict"] === true;
      // OpenAI's Responses takes a tool without the member for a strict one.
      if (isStrict) described["strict"] = false;
      return [isStrict, ...loosen(tool["tools"])];
    });
  const rewrite = (body: Json) => loosen(body["tools"]).includes(true);
  return { name: "tools with any schema", ignored: "strict", isOnce: true, words, rewrite };
}

/** Returns a value that is a text, such as an effort. */
export function textValue(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

const names = new WeakMap<OptionalMember, MemberName>();
/** End of a key that holds for one request. */
const once = " once";
/** Values that the vendors define. Others come from a client, so their refusal says nothing of other requests. */
const vendorValue =
  /^(?:none|minimal|low|medium|high|xhigh|max|auto|concise|detailed|default|flex|priority|scale|standard_only|enabled|adaptive|between_tools|disabled)$/;
/** The member is refused because of something else in the request. */
const conditional =
  /\b(?:when|if|unless|while|together|combined|in combination|alongside|without|containing|in this request)\b|\bfor (?:[\w-]+ )?requests?\b/i;
/** The member is refused beside something that is named, other than a model. Tools have a key of their own. */
const besides =
  /\bwith (?!(?:(?:this|that|the|your|selected|requested|specified|current|following) ){0,2}(?:models?|deployments?|apis?|endpoints?|providers?|organizations?|status|errors?)\b)/i;
/** The member as such is refused, whatever its value. */
const wholeMember =
  /\bun(?:supported|known|recognized|recognised|expected)\b|\bnot (?:currently |yet |be )?supported\b|\bextra inputs?\b|\bcannot find field\b|\binvalid (?:argument|parameter|field|property|key|member|option)s?\b|\bdo(?:es)?(?: not|n't) support\b/i;
const ofValue =
  /\b(?:values?|characters?|strings?|length|long|longer|pattern|format|encoding|additional properties)\b/i;

/**
 * Returns the keys of the adaptations after which the server may accept the body, by its error. The list is empty if
 * the error names nothing that may be left out. `written` returns the body, and is called only if the error may name
 * a member of it.
 */
export function adaptationsFor(error: string, adaptations: readonly Adaptation[], written: () => string): string[] {
  const words = errorWords(error);
  if (!adaptations.some((one) => isMeant(one, words))) return [];
  const body = written();
  const parsed: Json = JSON.parse(body);
  const found: { path: string; keys: string[] }[] = [];
  for (const one of adaptations) {
    if ("rewrite" in one) {
      if (isMeant(one, words) && one.rewrite(JSON.parse(body))) found.push({ path: one.name, keys: [one.name] });
    } else {
      const values = placesOf(parsed, one).map(([parent, key]) => valueAt(parent, key));
      const keys = values.length === 0 ? [] : keysNamed(one, values, words, parsed);
      if (keys.length > 0) found.push({ path: one.path, keys });
    }
  }
  // An error about a part of a member leaves the rest of the member alone.
  const precise = found.filter(({ path }) => !found.some((other) => other.path.startsWith(`${path}.`)));
  return [...new Set(precise.flatMap(({ keys }) => keys))];
}

/** Reports whether the error may be about the adaptation, whatever the body. */
function isMeant(one: Adaptation, words: ErrorWords): boolean {
  if (words.message === undefined) return false;
  return "rewrite" in one ? one.words.test(words.message) : words.about(nameOf(one), undefined, one) !== undefined;
}

function nameOf(one: OptionalMember): MemberName {
  let name = names.get(one);
  if (!name) {
    name = new MemberName(one.path);
    names.set(one, name);
  }
  return name;
}

/** Returns the body after the adaptations with these keys. */
export function adapted(body: string, adaptations: readonly Adaptation[], keys: ReadonlySet<string>): AdaptedBody {
  const parsed: Json = JSON.parse(body);
  const leftOut = new Set<string>();
  for (const one of adaptations) {
    if ("rewrite" in one) {
      if (keys.has(one.name) && one.rewrite(parsed) && one.ignored !== undefined) leftOut.add(one.ignored);
      continue;
    }
    let isChanged = false;
    // Entries of a list are removed from its end, so that the earlier ones keep their places.
    for (const [parent, key] of placesOf(parsed, one).reverse()) {
      const [plain, withTools] = keysOf(one, valueAt(parent, key));
      if (!isAmong(keys, plain) && !(hasTools(parsed) && isAmong(keys, withTools))) continue;
      if (Array.isArray(parent)) parent.splice(Number(key), 1);
      else delete parent[key];
      isChanged = true;
    }
    if (!isChanged) continue;
    if (one.ignored !== undefined) leftOut.add(one.ignored);
    removeEmpty(parsed, one.path);
    one.tidy?.(parsed);
  }
  return { body: JSON.stringify(parsed), leftOut: [...leftOut] };
}

/** Returns the keys that later requests need as well. */
export function lastingKeys(keys: ReadonlySet<string>, adaptations: readonly Adaptation[]): string[] {
  const rewrites = adaptations.filter((one) => "rewrite" in one && one.isOnce).map((one) => "name" in one && one.name);
  return [...keys].filter((key) => !rewrites.includes(key) && !key.endsWith(once));
}

/** Returns the lasting keys that other requests may try before the server has answered. */
export function trialKeys(keys: ReadonlySet<string>, adaptations: readonly Adaptation[]): string[] {
  const kept = adaptations.flatMap((one) => ("path" in one && one.isKeptInTrial ? keysOf(one, undefined) : []));
  return lastingKeys(keys, adaptations).filter((key) => !kept.includes(key));
}

/** Reports whether the keys have this one, for a time or for one request. */
export function isAmong(keys: ReadonlySet<string>, key: string): boolean {
  return keys.has(key) || keys.has(`${key}${once}`);
}

/** Some members are refused only beside tools: then other requests keep them. */
function keysNamed(one: OptionalMember, values: readonly unknown[], words: ErrorWords, body: Json): string[] {
  const clause = words.about(nameOf(one), body, one);
  if (clause === undefined) return [];
  const isBesideTools = hasTools(body) && !one.path.startsWith("tools.") && /\b(?:tool|function)s?\b/i.test(clause);
  return values.map((value) => {
    const key = keysOf(one, value)[isBesideTools ? 1 : 0];
    const isOnce = one.isOnce || (!isBesideTools && besides.test(clause)) || isOfRequest(one, value, clause, words);
    return isOnce ? `${key}${once}` : key;
  });
}

/** Reports whether the refusal says nothing of other requests with the member. */
function isOfRequest(one: OptionalMember, value: unknown, clause: string, { place }: ErrorWords): boolean {
  const part = one.refusedValue?.(value);
  if (part !== undefined && !vendorValue.test(part)) return true;
  if (conditional.test(clause)) return true;
  if (one.isOfClient !== true) return false;
  return !wholeMember.test(clause) || ofValue.test(clause) || nameOf(one).hasPartIn(`${clause} ${place ?? ""}`);
}

function keysOf({ path, refusedValue }: OptionalMember, value: unknown): readonly [plain: string, withTools: string] {
  const part = refusedValue?.(value);
  const key = part === undefined ? path : `${path}=${part}`;
  return [key, `${key} with tools`];
}

function hasTools({ tools }: Json): boolean {
  return Array.isArray(tools) && tools.length > 0;
}

type Parent = Json | unknown[];
type Place = readonly [parent: Parent, key: string | number];

function placesOf(body: Json, { path, only }: OptionalMember): Place[] {
  const [first = "", ...rest] = path.split(".");
  const places = first === "**" ? anywhere(body, rest[0] ?? "") : below(body, first, rest);
  return only === undefined ? places : places.filter(([parent, key]) => valueAt(parent, key) === only);
}

function below(parent: unknown, step: string, rest: readonly string[]): Place[] {
  if (!isObject(parent) && !Array.isArray(parent)) return [];
  const keys: readonly (string | number)[] =
    step === "*" ? (Array.isArray(parent) ? [...parent.keys()] : []) : Object.hasOwn(parent, step) ? [step] : [];
  const [next, ...others] = rest;
  if (next === undefined) return keys.map((key) => [parent, key] as const);
  return keys.flatMap((key) => below(valueAt(parent, key), next, others));
}

/** Searches neither in schemas nor in arguments, which belong to the client. */
function anywhere(value: unknown, name: string): Place[] {
  if (Array.isArray(value)) return value.flatMap((one) => anywhere(one, name));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]): Place[] => {
    if (key === name) return [[value, key]];
    return key === "input_schema" || key === "input" || key === "schema" ? [] : anywhere(inner, name);
  });
}

function valueAt(parent: Parent, key: string | number): unknown {
  return Array.isArray(parent) ? parent[Number(key)] : parent[key];
}

/** Removes the object or list at the first step of the path if nothing is left in it. */
function removeEmpty(body: Json, path: string): void {
  const [first = "", second] = path.split(".");
  const value = body[first];
  if (second === undefined || typeof value !== "object" || value === null) return;
  if (Object.keys(value).length === 0) delete body[first];
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
