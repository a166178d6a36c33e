// Parses the query parameters of a request. Each may appear at most once, and the route's schema validates them.
import type { z } from "zod";
import { fieldError, type GatewayError } from "../../base/errors.ts";

/** The parameter that `client.beta` of OpenAI's and Anthropic's SDKs adds to every request, as `beta=true`. */
const sdkParameter = "beta";

/**
 * Returns the parameters, validated by the schema, which must convert them from text. Throws `invalid_request` that
 * names an unknown or invalid parameter. If `prefixed` is `metadata`, parameters such as `metadata[k]=v` are allowed
 * and ignored here.
 */
export function readQuery<Schema extends z.ZodObject>(
  schema: Schema,
  target: string,
  prefixed?: string,
): z.output<Schema> {
  for (const [name] of searchParams(target)) {
    if (Object.hasOwn(schema.shape, name) || name === sdkParameter) continue;
    if (prefixed !== undefined && isPrefixed(name, prefixed)) continue;
    const known = Object.keys(schema.shape).join(", ");
    throw fieldError(shown(name), `is no parameter of this endpoint; known are ${known}.`);
  }
  return readKnownQuery(schema, target);
}

/** Returns the query's parameters, validated by the schema. Ignores unknown parameters. */
export function readKnownQuery<Schema extends z.ZodObject>(schema: Schema, target: string): z.output<Schema> {
  const values = new Map<string, string>();
  for (const [name, value] of searchParams(target)) {
    if (!Object.hasOwn(schema.shape, name)) continue;
    if (values.has(name)) throw repeated(name);
    requireStorable(name, value);
    values.set(name, value);
  }
  const result = schema.safeParse(Object.fromEntries(values));
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const name = String(issue?.path[0] ?? "query");
  const must = (schema.shape[name] as z.ZodType | undefined)?.meta()?.description ?? "a valid value";
  const got = values.get(name);
  throw fieldError(name, `must be ${must} (got ${got === undefined ? "nothing" : JSON.stringify(shown(got))}).`);
}

/**
 * Returns the parameters of the form `prefix[name]=value`, such as `metadata[topic]=demo`. Throws if a name is
 * repeated.
 */
export function readPrefixed(target: string, prefix: string): Record<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of searchParams(target)) {
    if (!isPrefixed(name, prefix)) continue;
    const inner = name.slice(prefix.length + 1, -1);
    if (found.has(inner)) throw repeated(name);
    requireStorable(shown(name), inner + value);
    found.set(inner, value);
  }
  return Object.fromEntries(found);
}

/** Throws for text with U+0000, which PostgreSQL can neither store nor compare. */
export function requireStorable(name: string, value: string): void {
  if (!value.includes("\0")) return;
  throw fieldError(name, "must not have the character U+0000 (%00); leave it out.");
}

function isPrefixed(name: string, prefix: string): boolean {
  return name.startsWith(`${prefix}[`) && name.endsWith("]");
}

function repeated(name: string): GatewayError {
  return fieldError(shown(name), "appears twice in the query; send it once.");
}

function shown(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}

/** Returns the query of a request target in origin or absolute form (RFC 9112, 3.2). A fragment is dropped. */
function searchParams(target: string): URLSearchParams {
  const end = target.indexOf("#");
  const sent = end < 0 ? target : target.slice(0, end);
  const start = sent.indexOf("?");
  return new URLSearchParams(start < 0 ? "" : sent.slice(start + 1));
}
