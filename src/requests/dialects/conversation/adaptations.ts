// Changes a translated request body for a model server that refuses a part of it.
import { type ErrorWords, errorWords, MemberName } from "./error-words.ts";

type Json = Record<string, unknown>;

/** A member that a server may refuse, although the answer does not depend on it. */
export interface OptionalMember {
  /** Path of the member in the body. `*` stands for each item of a list, and `**` at the beginning for any depth. */
  readonly path: string;
  /** The name of the member in the header `x-headrace-ignored`. Missing if no client sends such a member. */
  readonly ignored?: string;
  /** Returns the part of a value that servers refuse. Missing if they refuse the whole member. */
  readonly refusedValue?: (value: unknown) => string | undefined;
  /** The only value with which the member may be left out. Missing if it may be left out with any value. */
  readonly only?: string | number | boolean;
  /**
   * True if the client chooses the value. A server may then refuse the value in this request, and accept the member in
   * others.
   */
  readonly isOfClient?: true;
  /** True if the refusal of the member in one place does not concern others. Later requests then keep the member. */
  readonly isOnce?: true;
  /** True if other requests keep the member until the server has answered a request without it. */
  readonly isKeptInTrial?: true;
  /** Matches errors that mean the member but do not name it. */
  readonly words?: RegExp;
  /** Removes other parts of the body that make no sense without the member. */
  readonly tidy?: (body: Json) => void;
}

/** A change of the body that does not change its meaning, for servers with special rules. */
export interface Rewrite {
  readonly name: string;
  /** The name to report in the header `x-headrace-ignored`, if the change loses something. */
  readonly ignored?: string;
  /** True if the server refused a value that only this request has. Later requests are then not changed. */
  readonly isOnce?: true;
  /** Matches errors that require the change. */
  readonly words: RegExp;
  /** Changes the body. Returns whether anything changed. */
  readonly rewrite: (body: Json) => boolean;
}

export type Adaptation = OptionalMember | Rewrite;

export interface AdaptedBody {
  readonly body: string;
  /** Names of the client's members that were left out. */
  readonly leftOut: readonly string[];
}

/**
 * Returns the adaptation for a strict tool whose schema the server refuses with this error. Without `strict`, servers
 * accept any schema.
 */
export function looseSchemas(words: RegExp): Rewrite {
  const loosen = (tools: unknown): boolean[] =>
    (Array.isArray(tools) ? tools : []).filter(isObject).flatMap((tool) => {
      const described = isObject(tool["function"]) ? tool["function"] : tool;
      const isStrict = described["strict"] === true;
      // OpenAI's Responses API assumes `strict` if the member is missing, so it must be set to false.
      if (isStrict) described["strict"] = false;
      return [isStrict, ...loosen(tool["tools"])];
    });
  const rewrite = (body: Json) => loosen(body["tools"]).includes(true);
  return { name: "tools with any schema", ignored: "strict", isOnce: true, words, rewrite };
}

/** Returns the value if it is a text, such as an effort. */
export function textValue(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

const names = new WeakMap<OptionalMember, MemberName>();
/** End of a key that applies to one request only. */
const once = " once";
/**
 * Matches values that vendors define. Any other value comes from a client, so its refusal does not concern other
 * requests.
 */
const vendorValue =
  /^(?:none|minimal|low|medium|high|xhigh|max|auto|concise|detailed|default|flex|priority|scale|standard_only|enabled|adaptive|between_tools|disabled)$/;
/** Matches errors that refuse the member because of something else in the request. */
const conditional =
  /\b(?:when|if|unless|while|together|combined|in combination|alongside|without|containing|in this request)\b|\bfor (?:[\w-]+ )?requests?\b/i;
/**
 * Matches errors that refuse the member in combination with something that they name, other than a model. For tools
 * there are separate keys.
 */
const besides =
  /\bwith (?!(?:(?:this|that|the|your|selected|requested|specified|current|following) ){0,2}(?:models?|deployments?|apis?|endpoints?|providers?|organizations?|status|errors?)\b)/i;
/** Matches errors that refuse the member itself, whatever its value is. */
const wholeMember =
  /\bun(?:supported|known|recognized|recognised|expected)\b|\bnot (?:currently |yet |be )?supported\b|\bextra inputs?\b|\bcannot find field\b|\binvalid (?:argument|parameter|field|property|key|member|option)s?\b|\bdo(?:es)?(?: not|n't) support\b/i;
const ofValue =
  /\b(?:values?|characters?|strings?|length|long|longer|pattern|format|encoding|additional properties)\b/i;

/**
 * Returns the keys of the adaptations with which the server may accept the body, according to its error. The list is
 * empty if the error names nothing that may be left out. `written` returns the body. It is only called if the error may
 * name a member of the body.
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
  // If the error is about a part of a member, the rest of the member is kept.
  const precise = found.filter(({ path }) => !found.some((other) => other.path.startsWith(`${path}.`)));
  return [...new Set(precise.flatMap(({ keys }) => keys))];
}

/** Reports whether the error may mean this adaptation, for any body. */
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

/** Applies the adaptations with these keys to the body. */
export function adapted(body: string, adaptations: readonly Adaptation[], keys: ReadonlySet<string>): AdaptedBody {
  const parsed: Json = JSON.parse(body);
  const leftOut = new Set<string>();
  for (const one of adaptations) {
    if ("rewrite" in one) {
      if (keys.has(one.name) && one.rewrite(parsed) && one.ignored !== undefined) leftOut.add(one.ignored);
      continue;
    }
    let isChanged = false;
    // Items of a list are removed from the end, so that the positions of earlier items do not change.
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

/** Returns the keys that later requests need too. */
export function lastingKeys(keys: ReadonlySet<string>, adaptations: readonly Adaptation[]): string[] {
  const rewrites = adaptations.filter((one) => "rewrite" in one && one.isOnce).map((one) => "name" in one && one.name);
  return [...keys].filter((key) => !rewrites.includes(key) && !key.endsWith(once));
}

/** Returns the lasting keys that other requests already apply before the server has answered. */
export function trialKeys(keys: ReadonlySet<string>, adaptations: readonly Adaptation[]): string[] {
  const kept = adaptations.flatMap((one) => ("path" in one && one.isKeptInTrial ? keysOf(one, undefined) : []));
  return lastingKeys(keys, adaptations).filter((key) => !kept.includes(key));
}

/** Reports whether the keys contain `key`. Its form with the suffix `once` applies to one request only. */
export function isAmong(keys: ReadonlySet<string>, key: string): boolean {
  return keys.has(key) || keys.has(`${key}${once}`);
}

/**
 * Returns the keys for a member that the error names. If a server refuses the member only in combination with tools,
 * requests without tools keep the member.
 */
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

/** Reports whether the refusal concerns only this request, and not others that have the member. */
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

/** Finds the member at any depth, but not in schemas or arguments, because the client chooses the names there. */
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

/** Removes the object or list that is the first step of the path, if it is now empty. */
function removeEmpty(body: Json, path: string): void {
  const [first = "", second] = path.split(".");
  const value = body[first];
  if (second === undefined || typeof value !== "object" || value === null) return;
  if (Object.keys(value).length === 0) delete body[first];
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
