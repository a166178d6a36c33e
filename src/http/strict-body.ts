// Reads the body of a management request: its shape, and no member that this shape does not know.
import type { z } from "zod";
import { GatewayError } from "../domain/errors.ts";
import type { IncomingRequest } from "../http1/message.ts";
import { type BodyLimits, readJsonBody } from "./body.ts";
import { validate } from "./validation.ts";
import { formatPath } from "./validation-text.ts";

/** A misspelt member is refused: a key whose `expires_at` was not understood would never expire. */
export async function readStrictBody<Schema extends z.ZodObject>(
  schema: Schema,
  request: IncomingRequest,
  limits: BodyLimits,
): Promise<z.output<Schema>> {
  const { body } = await readJsonBody(request, limits);
  for (const name of Object.keys(body)) {
    if (Object.hasOwn(schema.shape, name)) continue;
    const known = Object.keys(schema.shape).join(", ");
    throw new GatewayError(
      "invalid_request",
      `${formatPath([name])}: is no member of this request; known are ${known}.`,
    );
  }
  validate(schema, body);
  return body as z.output<Schema>;
}
