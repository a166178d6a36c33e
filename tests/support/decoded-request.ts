// A request as the gateway decodes it, without the checks that come with that.
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { dialects } from "../../src/dialects/dialects.ts";
import type { Operation } from "../../src/domain/models/operation.ts";
import { DecodedRequest } from "../../src/inference/decoded-request.ts";
import { marksOf } from "../../src/inference/facts.ts";

/** `indent` as of JSON.stringify. */
export function decodedRequest(body: Record<string, unknown>, operation: Operation = "chat", indent = 0) {
  const text = JSON.stringify({ model: "m", ...body }, null, indent);
  return new DecodedRequest(dialects[operation], ByteSpan.of(text), marksOf(dialects[operation], JSON.parse(text)));
}
