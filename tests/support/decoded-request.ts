// A request as the gateway decodes it, without the checks that come with that.
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { Operation } from "../../src/domain/models/operation.ts";
import { DecodedRequest } from "../../src/requests/decoded-request.ts";
import { dialects } from "../../src/requests/dialects/dialects.ts";
import { factsOf } from "../../src/requests/facts.ts";

/** `indent` as of JSON.stringify. */
export function decodedRequest(body: Record<string, unknown>, operation: Operation = "chat", indent = 0) {
  const text = JSON.stringify({ model: "m", ...body }, null, indent);
  return new DecodedRequest(dialects[operation], ByteSpan.of(text), factsOf(dialects[operation], JSON.parse(text)));
}
