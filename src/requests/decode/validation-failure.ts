// Finds the first position at which a value does not fit its schema, and the values that are allowed there.
import type { Node } from "./json-schema.ts";
import { type ArrayRule, fitsAnyNumber, fitsAnyText, type ObjectRule, type ValueRule } from "./rule.ts";

export type Path = readonly (string | number)[];

export interface Failure {
  path: (string | number)[];
  /** The wrong value. Undefined if the field is missing. */
  found: unknown;
  allowed: readonly Node[];
  /** True if the wrong part is the name of the member at `path` and not its value. */
  inName?: boolean;
}

/** Returns the first failure, or undefined if the value fits. For a value that fits, no memory is allocated. */
export function findFailure(rule: ValueRule, value: unknown): Failure | undefined {
  if (rule.isOpen) return undefined;
  if (typeof value === "object" && value !== null) {
    if (!Array.isArray(value)) return failureInObject(rule, value as Readonly<Record<string, unknown>>);
    const array = rule.arrayFor(value);
    return array === undefined ? failure(value, rule.options) : failureInArray(array, value);
  }
  return fitsOne(rule, value) ? undefined : failure(value, rule.options);
}

function fitsOne(rule: ValueRule, value: unknown): boolean {
  if (typeof value === "string") return fitsAnyText(rule.texts, value);
  if (typeof value === "number") return fitsAnyNumber(rule.numbers, value);
  if (typeof value === "boolean") return value ? rule.allowsTrue : rule.allowsFalse;
  return value === null && rule.allowsNull;
}

function failureInObject(rule: ValueRule, value: Readonly<Record<string, unknown>>): Failure | undefined {
  const object = rule.objectFor(value);
  if (object === undefined) {
    const { tag } = rule;
    return tag === undefined ? failure(value, rule.options) : failureIn(tag.name, value[tag.name], tag.allowed);
  }
  for (const { name, value: missing } of object.required) {
    if (value[name] === undefined) return failureIn(name, undefined, missing.options);
  }
  return object.checksAll ? failureInAll(object, value) : failureInKnown(object, value);
}

function failureInAll({ members, names, other }: ObjectRule, value: Readonly<Record<string, unknown>>) {
  if (members.size === 0 && names === undefined && other.value.isOpen) return undefined;
  for (const name in value) {
    if (names !== undefined && !fitsAnyText(names.texts, name))
      return { ...failure(name, names.options), inName: true };
    const found = findFailure(members.get(name)?.value ?? other.value, value[name]);
    if (found) return under(name, found);
  }
  return undefined;
}

function failureInKnown({ members }: ObjectRule, value: Readonly<Record<string, unknown>>): Failure | undefined {
  for (const [name, { value: rule }] of members) {
    if (!Object.hasOwn(value, name)) continue;
    const found = findFailure(rule, value[name]);
    if (found) return under(name, found);
  }
  return undefined;
}

function failureInArray({ least, most, items, node }: ArrayRule, value: readonly unknown[]): Failure | undefined {
  if (value.length < least || value.length > most) return failure(value, [node]);
  if (items.isOpen) return undefined;
  for (let i = 0; i < value.length; i++) {
    const found = findFailure(items, value[i]);
    if (found) return under(i, found);
  }
  return undefined;
}

function failure(found: unknown, allowed: readonly Node[]): Failure {
  return { path: [], found, allowed };
}

function failureIn(name: string, found: unknown, allowed: readonly Node[]): Failure {
  return { path: [name], found, allowed };
}

function under(step: string | number, found: Failure): Failure {
  found.path.unshift(step);
  return found;
}
