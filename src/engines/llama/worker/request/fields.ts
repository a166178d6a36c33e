// Reads the fields of a request body. Throws a 400 error that names an invalid field and its allowed values.
import { invalid, type RequestError } from "./request-error.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * An object in the request and its path, e.g. `messages[2].`. A field with null counts as missing, because some
 * SDKs send null.
 */
export class Fields {
  readonly #object: JsonObject;
  readonly #path: string;

  constructor(object: JsonObject, path = "") {
    this.#object = object;
    this.#path = path;
  }

  /** The full name of a field for error messages. */
  name(key: string): string {
    return this.#path + key;
  }

  value(key: string): unknown {
    return this.#object[key] ?? undefined;
  }

  /** Returns a number, or undefined if the field is missing. `least` and `most` are allowed values. */
  number(key: string, least: number, most: number): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= least && value <= most) return value;
    throw this.#wrong(key, `must be a number from ${least} to ${most}.`);
  }

  integer(key: string, least: number, most: number): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
    throw this.#wrong(key, `must be a whole number from ${least} to ${most}.`);
  }

  boolean(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.#wrong(key, "must be true or false.");
  }

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === "string") return value;
    throw this.#wrong(key, "must be a string.");
  }

  oneOf<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const choice = choices.find((candidate) => candidate === value);
    if (choice !== undefined) return choice;
    throw this.#wrong(key, `must be one of ${choices.map((candidate) => `"${candidate}"`).join(", ")}.`);
  }

  array(key: string): readonly unknown[] | undefined {
    const value = this.value(key);
    if (value === undefined || Array.isArray(value)) return value as readonly unknown[] | undefined;
    throw this.#wrong(key, "must be an array.");
  }

  object(key: string): Fields | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (isObject(value)) return new Fields(value, `${this.name(key)}.`);
    throw this.#wrong(key, "must be an object.");
  }

  #wrong(key: string, rule: string): RequestError {
    return invalid(`${this.name(key)} ${rule}`, this.name(key));
  }
}
