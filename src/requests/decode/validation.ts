// Checks a value against a schema. The error says in one sentence which field is wrong, which values it allows, and
// which value it has.
import type { z } from "zod";
import { invalidRequest } from "../../base/errors.ts";
import { formatPath } from "../../base/text/json-path.ts";
import { compileRule } from "./compile-rule.ts";
import type { ValueRule } from "./rule.ts";
import { type Failure, findFailure } from "./validation-failure.ts";
import { describeAllowed, describeValue } from "./validation-text.ts";

const compiled = new WeakMap<z.ZodType, ValueRule>();

/** Validates a value in the same way as `requireFit`. Each schema is compiled only once. */
export function validate(schema: z.ZodType, value: unknown): void {
  let rule = compiled.get(schema);
  if (rule === undefined) {
    rule = compileRule(schema);
    compiled.set(schema, rule);
  }
  requireFit(rule, value);
}

/**
 * Throws `invalid_request` for the first failure. Never changes or copies the value. The schema library is not used,
 * because it would collect every error of a body with millions of errors.
 */
export function requireFit(rule: ValueRule, value: unknown): void {
  const failure = findFailure(rule, value);
  if (!failure) return;
  const param = failure.path.length === 0 ? undefined : formatPath(failure.path);
  throw invalidRequest(explain(failure), { param });
}

function explain({ path, found, allowed, inName }: Failure): string {
  const where = formatPath(path);
  const must = describeAllowed(allowed);
  if (inName) return `${where}: its names must each be ${must}.`;
  if (found === undefined) {
    const orNull = allowed.some(({ type }) => type === "null") ? ", or null" : "";
    return `${where}: is required and must be ${must}${orNull}.`;
  }
  return `${where}: must be ${must} (got ${describeValue(found, allowed)}).`;
}
