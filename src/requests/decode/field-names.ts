// Refuses names of members that another parser may read as a known name: because it ignores case, or because it
// replaces or drops some characters.
import { fieldError, type GatewayError, invalidRequest } from "../../base/errors.ts";
import { formatPath, formatPathInAscii } from "../../base/text/json-path.ts";
import {
  bareName,
  foldName,
  oneModel,
  overridingFault,
  plainName,
  prototypeName,
  synonyms,
} from "../../domain/names/field-names.ts";
import type { ObjectRule, ValueRule } from "./rule.ts";
import type { Path } from "./validation-failure.ts";

/**
 * Maximum number of names that are folded for one body. A client that sends more is trying to keep the process busy.
 */
const maxFolded = 10_000;
/**
 * Paths of members in which Vercel's gateway and OpenRouter look for other models to call. If there are `values`, only
 * these values count.
 */
const leading: readonly { readonly names: readonly string[]; readonly values?: readonly unknown[] }[] = [
  { names: ["provideroptions", "gateway", "models"] },
  { names: ["plugins", "id"], values: ["fusion"] },
  { names: ["tools", "type"], values: ["openrouter:fusion", "openrouter:advisor", "openrouter:subagent"] },
];
/** Names of the members of messages and of their parts, for all kinds of messages. */
const partNames: readonly string[] = [
  ...["content", "text", "tool_calls", "function_call", "refusal"],
  ...["role", "name", "tool_call_id"],
];
/** Yields all member names that the schema knows, for every kind of object that the rule accepts. */
export function* namesOf(rule: ValueRule): Generator<string> {
  for (const { members } of rule.objects) yield* members.keys();
}

/**
 * Ensures that the gateway checks, counts and records the same fields that a model server reads. Objects whose names
 * the client chooses, such as the parameters of a tool, may have any names.
 */
export class FieldNames {
  /** The known names of the body, by their folded form. */
  readonly #known = new Map<string, string>();
  /**
   * The known names of inner objects, by their folded form. Built when an object first has a name that must be folded.
   */
  readonly #knownIn = new WeakMap<ValueRule, ReadonlyMap<string, string>>();
  /**
   * Names that decide the cost of a request or how it is handled, by their bare form. They are grouped by the body
   * member that contains them. The key "" stands for the body itself.
   */
  readonly #decisive = new Map<string, ReadonlyMap<string, string>>();
  /** Number of names that were folded in the current body. */
  #folded = 0;

  /**
   * `known` has the names of the body for all endpoints. `decisive` has names that the gateway reads. Names of the body
   * are under "", and names inside a member are under the member's name.
   */
  constructor(known: Iterable<string>, decisive: Iterable<readonly [inMember: string, names: readonly string[]]>) {
    for (const name of known) this.#known.set(foldName(name), name);
    for (const [name, meant] of synonyms) this.#known.set(name, meant);
    for (const [inMember, names] of decisive) {
      this.#decisive.set(inMember, new Map(names.map((name) => [bareName(name), name])));
    }
  }

  require(rule: ValueRule, body: unknown): void {
    this.#folded = 0;
    this.#requireIn(rule, body, []);
    for (const { names, values } of leading) {
      const path = pathTo(names, values, body);
      if (path) throw refusal(path, `some model servers take it beside \`model\`, so it is refused: ${oneModel}`);
    }
  }

  #requireIn(rule: ValueRule, value: unknown, path: Path): void {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      const items = rule.arrayFor(value)?.items;
      if (items === undefined || items.isOpen) return;
      for (let i = 0; i < value.length; i++) {
        if (typeof value[i] === "object") this.#requireIn(items, value[i], [...path, i]);
      }
      return;
    }
    const members = value as Readonly<Record<string, unknown>>;
    const object = rule.objectFor(members);
    if (object === undefined || object.members.size === 0) return;
    this.#requireClear(rule, object, members, path);
    for (const name in members) {
      const known = object.members.get(name);
      if (known && !known.value.isOpen) this.#requireIn(known.value, members[name], [...path, name]);
    }
  }

  #requireClear(rule: ValueRule, { members }: ObjectRule, value: Readonly<Record<string, unknown>>, path: Path): void {
    let isPlain = true;
    const decisive = path.length < 2 ? this.#decisive.get(String(path[0] ?? "")) : undefined;
    for (const name in value) {
      if (members.has(name)) continue;
      if (name === prototypeName) {
        throw refusal(
          [...path, name],
          "is no field, but some model servers take what it holds for fields; leave it out",
        );
      }
      const overrides = path.length === 0 ? overridingFault(name) : undefined;
      if (overrides !== undefined) throw fieldError(formatPathInAscii([...path, name]), overrides);
      const decided = decisive?.get(bareName(name));
      if (decided !== undefined && decided !== name) throw readAs([...path, name], [...path, decided]);
      const isSynonym = path.length === 0 && synonyms.has(name);
      if (!isSynonym && plainName.test(name)) continue;
      isPlain &&= isSynonym;
      if (++this.#folded > maxFolded) {
        const reason = `more than ${maxFolded} of its fields have names with capitals or characters beyond ASCII`;
        throw invalidRequest(`The body cannot be used: ${reason}.`);
      }
      const meant = this.#knownAt(rule, path).get(foldName(name));
      if (meant === undefined || meant === name) continue;
      throw readAs([...path, name], [...path, meant]);
    }
    if (!isPlain) this.#requireDistinct(value, path);
  }

  #knownAt(rule: ValueRule, [first]: Path): ReadonlyMap<string, string> {
    if (first === undefined) return this.#known;
    let known = this.#knownIn.get(rule);
    if (known === undefined) {
      const names = [...namesOf(rule), ...(first === "messages" ? partNames : [])];
      known = new Map(names.map((name) => [foldName(name), name]));
      this.#knownIn.set(rule, known);
    }
    return known;
  }

  #requireDistinct(value: Readonly<Record<string, unknown>>, path: Path): void {
    const names = new Map<string, string>();
    for (const name in value) {
      const folded = foldName(name);
      const other = names.get(folded);
      if (other !== undefined) {
        throw refusal(
          [...path, name],
          `some model servers read it as \`${formatPathInAscii([...path, other])}\`; send one of them`,
        );
      }
      names.set(folded, name);
    }
  }
}

/**
 * Returns the path of the first matching value that is reached through members with these folded names, in this order.
 * The value must be one of `values`. If there are no `values`, any value except null matches.
 */
function pathTo(names: readonly string[], values: readonly unknown[] | undefined, value: unknown): Path | undefined {
  const [name] = names;
  if (name === undefined) return (values ? values.includes(value) : value != null) ? [] : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const path = pathTo(names, values, value[i]);
      if (path) return [i, ...path];
    }
    return undefined;
  }
  for (const [key, member] of Object.entries(value)) {
    const path = foldName(key) === name ? pathTo(names.slice(1), values, member) : undefined;
    if (path) return [key, ...path];
  }
  return undefined;
}

function readAs(path: Path, meant: Path): GatewayError {
  const right = formatPath(meant);
  return refusal(path, `some model servers read it as \`${right}\`; send \`${right}\`, or leave it out`);
}

function refusal(path: Path, reason: string): GatewayError {
  return fieldError(formatPathInAscii(path), `${reason}.`);
}
