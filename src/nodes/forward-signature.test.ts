// Tests the signatures between replicas: valid once, for a short time, and for exactly what was signed.
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { bodyDigest, ForwardVerifier, type SignedRequest, signForward } from "./forward-signature.ts";

const key = randomBytes(32);
const request: SignedRequest = {
  method: "POST",
  path: "/internal/nodes/node_1/requests",
  replicaId: "rep_1",
  about: "eyJ9",
  bodyDigest: bodyDigest("{}"),
};

test("accepts a signature once, and not again while its time is valid", () => {
  const clock = manualClock();
  const verifier = new ForwardVerifier(key, clock);
  const signed = signForward(request, key, clock);
  expect(verifier.verify(request, signed)).toBe(true);
  for (let second = 0; second <= 70; second++) {
    expect(verifier.verify(request, signed)).toBe(false);
    // Other requests are accepted meanwhile.
    expect(verifier.verify(request, signForward(request, key, clock))).toBe(true);
    clock.advance(1_000);
  }
});

test("refuses a replay on the far side of the moment at which old nonces are forgotten", () => {
  const clock = manualClock();
  const verifier = new ForwardVerifier(key, clock);
  clock.advance(59_000);
  const ahead = manualClock();
  ahead.jump(clock.nowSeconds() - ahead.nowSeconds() + 30);
  const signed = signForward(request, key, ahead);
  expect(verifier.verify(request, signed)).toBe(true);
  clock.advance(2_000);
  expect(verifier.verify(request, signForward(request, key, clock))).toBe(true);
  expect(verifier.verify(request, signed)).toBe(false);
});

test.each([
  ["method", "PUT"],
  ["path", "/internal/nodes/node_2/requests"],
  ["replicaId", "rep_2"],
  ["about", "eyJ8"],
  ["bodyDigest", bodyDigest("{ }")],
] as const)("rejects a signature for another %s", (name, value) => {
  const clock = manualClock();
  const verifier = new ForwardVerifier(key, clock);
  const signed = signForward(request, key, clock);
  expect(verifier.verify({ ...request, [name]: value }, signed)).toBe(false);
  // A refused request does not use up the nonce.
  expect(verifier.verify(request, signed)).toBe(true);
});

test("accepts clocks up to 30 s apart, and rejects other keys and malformed signatures", () => {
  const clock = manualClock();
  const signed = signForward(request, key, clock);
  const at = (seconds: number) => {
    const other = manualClock();
    other.jump(seconds);
    return new ForwardVerifier(key, other).verify(request, signed);
  };
  expect([-31, -30, 0, 30, 31].map(at)).toEqual([false, true, true, true, false]);
  expect(new ForwardVerifier(randomBytes(32), clock).verify(request, signed)).toBe(false);
  for (const wrong of ["", ".", signed.slice(1), `${signed}A`, signed.replace(/^\d+/, "1"), "1.2.3"]) {
    expect(new ForwardVerifier(key, clock).verify(request, wrong)).toBe(false);
  }
});
