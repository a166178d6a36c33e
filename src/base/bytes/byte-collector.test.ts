// Pieces of a body are put together in memory that is counted, and does not keep what they were received with.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { BufferedBytes } from "./buffered-bytes.ts";
import { ByteCollector } from "./byte-collector.ts";
import { ByteSpan } from "./byte-span.ts";

test("returns all pieces in order, counts their bytes, and holds none after the release", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 40_000 }), { minLength: 1, maxLength: 8 }), (all) => {
      const ledger = new BufferedBytes(100_000_000);
      const [first = new Uint8Array(), ...rest] = all;
      ledger.visitors.take("answers", first.length);
      const collector = new ByteCollector("answers", ledger.visitors, ByteSpan.of(first));
      for (const piece of rest) expect(collector.add(ByteSpan.of(piece))).toBeUndefined();
      const whole = Buffer.concat(all);
      expect(collector.length).toBe(whole.length);
      expect(ledger.total).toBeGreaterThanOrEqual(whole.length);
      expect(collector.joined().view.equals(whole)).toBe(true);
      collector.release();
      expect(ledger.total).toBe(0);
    }),
  );
});

test("returns the refusal once its memory account is full", () => {
  const ledger = new BufferedBytes(300_000);
  ledger.visitors.take("answers", 1);
  const collector = new ByteCollector("answers", ledger.visitors, ByteSpan.of("x"));
  let refusal: unknown;
  for (let n = 0; n < 20 && !refusal; n++) refusal = collector.add(ByteSpan.of(new Uint8Array(10_000)));
  expect(refusal).toMatchObject({ code: "rate_limit_exceeded" });
  expect(ledger.total).toBeLessThanOrEqual(100_000);
});
