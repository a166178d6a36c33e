// Refuses messages that have a field name which another parser may read as a different field.
import { fieldError, type GatewayError, invalidRequest } from "../../base/errors.ts";
import { formatPathInAscii, type JsonPath } from "../../base/text/json-path.ts";
import { bareName, prototypeName } from "./field-names.ts";

export interface Vocabulary {
  /** Names of the protocol's fields, at any depth. */
  readonly known: Iterable<string>;
  /**
   * Fields whose members the sender names freely, such as schemas, arguments and metadata. Their content is not
   * checked.
   */
  readonly open: Iterable<string>;
}

/** Maximum number of unknown names in one message. A message with more is an attempt to keep the process busy. */
const maxUnknown = 10_000;

/**
 * Checks events, tool calls and other messages for which there is no complete schema. (`FieldNames` checks request
 * bodies.)
 */
export class ClearNames {
  /** The known names, by their form without case and separators. */
  readonly #known: ReadonlyMap<string, string>;
  readonly #names: ReadonlySet<string>;
  readonly #open: ReadonlySet<string>;

  constructor({ known, open }: Vocabulary) {
    this.#open = new Set(open);
    this.#names = new Set([...known, ...this.#open]);
    this.#known = new Map([...this.#names].map((name) => [bareName(name), name]));
  }

  /** Throws `invalid_request` if a name in the message could be read differently. `value` is parsed JSON. */
  require(value: unknown): void {
    this.#requireIn(value, [], { unknown: 0 });
  }

  #requireIn(value: unknown, path: JsonPath, counts: { unknown: number }): void {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        if (typeof value[i] === "object") this.#requireIn(value[i], [...path, i], counts);
      }
      return;
    }
    const members = value as Readonly<Record<string, unknown>>;
    let unknown: Map<string, string> | undefined;
    for (const name of Object.keys(members)) {
      if (!this.#names.has(name)) {
        if (++counts.unknown > maxUnknown) {
          throw invalidRequest(`The message cannot be used: more than ${maxUnknown} of its fields are unknown.`);
        }
        unknown ??= new Map();
        this.#requireClear(name, unknown, path);
      }
      const member = members[name];
      if (typeof member === "object" && !this.#open.has(name)) this.#requireIn(member, [...path, name], counts);
    }
  }

  /**
   * Throws if `name` could be read as a known name, or as another name of the same object. `unknown` has the object's
   * other names by their form without case and separators.
   */
  #requireClear(name: string, unknown: Map<string, string>, path: JsonPath): void {
    if (name === prototypeName) throw refusal([...path, name], "is no field; leave it out");
    const bare = bareName(name);
    const meant = this.#known.get(bare);
    if (meant !== undefined) {
      const right = formatPathInAscii([...path, meant]);
      throw refusal([...path, name], `some servers read it as \`${right}\`; send \`${right}\`, or leave it out`);
    }
    const other = unknown.get(bare);
    if (other !== undefined) {
      throw refusal(
        [...path, name],
        `some servers read it as \`${formatPathInAscii([...path, other])}\`; send one of them`,
      );
    }
    unknown.set(bare, name);
  }
}

function refusal(path: JsonPath, reason: string): GatewayError {
  return fieldError(formatPathInAscii(path), `${reason}.`);
}
