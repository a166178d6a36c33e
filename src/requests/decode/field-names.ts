// Refuses names that another parser may take for a field which they are not: in another case, or with characters that it folds or leaves out.
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

/** Names that have to be folded, of one body: more are an attempt to keep the process busy. */
const maxFolded = 10_000;
/** Members of the body in which Vercel's gateway and OpenRouter find other models; of some, only where they have one of these values. */
const leading: readonly { readonly names: readonly string[]; readonly values?: readonly unknown[] }[] = [
  { names: ["provideroptions", "gateway", "models"] },
  { names: ["plugins", "id"], values: ["fusion"] },
  { names: ["tools", "type"], values: ["openrouter:fusion", "openrouter:advisor", "openrouter:subagent"] },
];
/** Names of messages and of what is in them, whatever kinds of those have them by their schemas. */
const partNames: readonly string[] = [
  ...["content", "text", "tool_calls", "function_call", "refusal"],
  ...["role", "name", "tool_call_id"],
];
/** All names that the object has by its schema, whichever of several kinds it is. */
export function* namesOf(rule: ValueRule): Generator<string> {
  for (const { members } of rule.objects) yield* members.keys();
}

/**
 * What is checked, counted and recorded has to be what a model server reads. Names are looked at wherever a schema knows
 * some: an object that is a client's own, as the parameters of a tool, may have any.
 */
export class FieldNames {
  /** The names of the body, by their folded form. */
  readonly #known = new Map<string, string>();
  /** Likewise, of objects in it; worked out when one has a name that has to be folded. */
  readonly #knownIn = new WeakMap<ValueRule, ReadonlyMap<string, string>>();
  /** By their bare form, by the name of the member of the body that they are in; the body's own by an empty one. */
  readonly #decisive = new Map<string, ReadonlyMap<string, string>>();
  /** How many names of the body at hand were folded. */
  #folded = 0;

  /** `known`: names of the body, of all endpoints. `decisive`: names that the gateway goes by, of the body and of members of it, whose names stand before theirs. */
  constructor(known: Iterable<string>, decisive: Iterable<readonly [inMember: string, names: readonly string[]]>) {
    for (const name of known) this.#known.set(foldName(name), name);
    for (const [name, meant] of synonyms) this.#known.set(name, meant);
    for (const [inMember, names] of decisive) {
      this.#decisive.set(inMember, new Map(names.map((name) => [bareName(name), name])));
    }
  }

  /** Throws `invalid_request`. */
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

/** The path of the first member under these names, in their folded form, that has one of these values; undefined: any but null. */
function pathTo(
  [name, ...inner]: readonly string[],
  values: readonly unknown[] | undefined,
  value: unknown,
): Path | undefined {
  if (name === undefined) return (values ? values.includes(value) : value != null) ? [] : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const isItem = Array.isArray(value);
    if (!isItem && foldName(key) !== name) continue;
    const path = pathTo(isItem ? [name, ...inner] : inner, values, member);
    if (path) return [isItem ? Number(key) : key, ...path];
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
