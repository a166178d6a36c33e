// Reads and validates the JSON body of a management request. Unknown members are refused.
import { z } from "zod";
import { fieldError, type GatewayError } from "../../base/errors.ts";
import { formatPath } from "../../base/text/json-path.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import type { BodyLimits } from "../../requests/decode/parse-body.ts";
import { validate } from "../../requests/decode/validation.ts";
import type { Path } from "../../requests/decode/validation-failure.ts";
import { readJsonBody } from "./body.ts";

const maxBytes = 1024 * 1024;

/**
 * Reads and validates the body. Throws for an unknown member, because ignoring a misspelt `expires_at` would create a
 * key that never expires.
 */
export async function readStrictBody<Schema extends z.ZodObject>(
  schema: Schema,
  request: IncomingRequest,
  limits: BodyLimits,
): Promise<z.output<Schema>> {
  const { body } = await readJsonBody(request, { ...limits, bodyBytes: Math.min(limits.bodyBytes, maxBytes) });
  return strictly(schema, body);
}

/** Returns the value with its type. Throws for an unknown member and for a value that the schema does not allow. */
export function strictly<Schema extends z.ZodObject>(schema: Schema, value: unknown): z.output<Schema> {
  requireKnownMembers(schema, value, []);
  validate(schema, value);
  return value as z.output<Schema>;
}

/** Throws for an unknown member, also in nested objects. Values of a wrong type are left to `validate`. */
function requireKnownMembers(schema: z.core.$ZodType, value: unknown, path: Path): void {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    requireKnownMembers(schema.def.innerType, value, path);
  } else if (schema instanceof z.ZodArray && Array.isArray(value)) {
    for (const [index, item] of value.entries()) requireKnownMembers(schema.element, item, [...path, index]);
  } else if (schema instanceof z.ZodObject && typeof value === "object" && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      const known = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
      if (known) requireKnownMembers(known, member, [...path, name]);
      else if (path.length === 0 || schema.def.catchall instanceof z.ZodNever)
        throw unknownMember(schema, [...path, name], path);
    }
  }
}

function unknownMember(schema: z.ZodObject, path: Path, of: Path): GatewayError {
  const known = Object.keys(schema.shape).join(", ");
  const what = of.length === 0 ? "this request" : formatPath(of);
  return fieldError(formatPath(path), `is no member of ${what}; known are ${known}.`);
}
