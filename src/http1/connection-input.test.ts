// What a connection holds between its requests.
import { expect, test } from "bun:test";
import { ConnectionInput } from "./connection-input.ts";
import { defaultLimits } from "./server-limits.ts";
import { get } from "./testing/server-fixture.ts";

test("the beginning of a head holds no more than itself of the requests that came with it", () => {
  const limits = defaultLimits();
  const whole = get(`/${"x".repeat(10_000)}`);
  const count = 50;
  const inputs: ConnectionInput[] = [];
  Bun.gc(true);
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 100; n++) {
    const input = new ConnectionInput(limits);
    const bytes = Buffer.allocUnsafeSlow(count * whole.length + 5);
    bytes.write(`${whole.repeat(count)}GET /`, "latin1");
    input.append(bytes, 0);
    for (let taken = 0; taken < count; taken++) expect(input.take()?.head.method).toBe("GET");
    expect(input.take()).toBeUndefined();
    inputs.push(input);
  }
  Bun.gc(true);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000);
  for (const input of inputs) {
    input.append(Buffer.from("end HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    expect(input.take()?.head.target).toBe("/end");
  }
});
