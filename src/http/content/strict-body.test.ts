import { expect, test } from "bun:test";
import { z } from "zod";
import { incoming } from "../../../tests/support/exchange.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { RequestBodyError } from "../../http1/message.ts";
import { readStrictBody } from "./strict-body.ts";

test("refuses a management request above 1 MiB, whatever the limit for model requests", async () => {
  const bytes = ByteSpan.of(JSON.stringify({ name: "x".repeat(1024 * 1024) }));
  const readBody = (maxBytes: number) => {
    if (bytes.length > maxBytes) throw new RequestBodyError("too_large", "too large");
    return bytes;
  };
  const req = { ...incoming({ target: "/", body: "" }), readBody };
  const limits = { bodyBytes: 32 * 1024 * 1024, depth: 64 };
  const read = readStrictBody(z.object({ name: z.string() }), req, limits);
  await expect(read).rejects.toMatchObject({ code: "request_too_large" });
});
