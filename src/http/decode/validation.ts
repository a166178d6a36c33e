// Checks a value against a schema and says in one sentence which field is wrong, what it may be, and what it was.
import { z } from "zod";
import { GatewayError } from "../../base/errors.ts";
import { alternatives, inline, type Node } from "./json-schema.ts";
import { fits, type Shape, shapeOf } from "./shape.ts";
import { type Failure, findFailure } from "./validation-failure.ts";
import { describeAllowed, describeValue, formatPath } from "./validation-text.ts";

interface Compiled {
  options: readonly Node[];
  shape: Shape;
}

const compiled = new WeakMap<z.ZodType, Compiled>();

/** The form of a schema that `fits` takes. */
export function shapeFor(schema: z.ZodType): Shape {
  return (compiled.get(schema) ?? compile(schema)).shape;
}

/**
 * Throws `invalid_request` for the first thing that is wrong; the value is never changed or copied. The schema is read
 * as JSON Schema rather than run by its library, which would go on to collect every error of a body made to have
 * millions. Whether a value fits is decided without a thought of why not: only where it does not is that searched for.
 */
export function validate(schema: z.ZodType, value: unknown): void {
  const { options, shape } = compiled.get(schema) ?? compile(schema);
  if (fits(shape, value)) return;
  const failure = findFailure(options, value);
  if (!failure) return;
  const param = failure.path.length === 0 ? undefined : formatPath(failure.path);
  throw new GatewayError("invalid_request", explain(failure), { param });
}

function compile(schema: z.ZodType): Compiled {
  const root = z.toJSONSchema(schema, { io: "input" }) as Node;
  const options = alternatives(inline(root, root));
  const result = { options, shape: shapeOf(options) };
  compiled.set(schema, result);
  return result;
}

function explain({ path, found, allowed, inName }: Failure): string {
  const where = formatPath(path);
  const must = describeAllowed(allowed);
  if (inName) return `${where}: its names must each be ${must}.`;
  if (found === undefined) return `${where}: is required and must be ${must}.`;
  return `${where}: must be ${must} (got ${describeValue(found, allowed)}).`;
}
