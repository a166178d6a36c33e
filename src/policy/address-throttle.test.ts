// Tests how often one address may send requests that need no credential.
import { beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type ManualClock, manualClock } from "../../tests/support/manual-clock.ts";
import { AddressThrottle, addressLimits } from "./address-throttle.ts";
import { UnknownCredentials } from "./credentials/unknown-credentials.ts";

/** Returns how many of `count` requests from this address are accepted now. */
function passing(throttle: AddressThrottle, count: number, address: string): number {
  return Array.from({ length: count }, () => throttle.take("form", address)).filter((refusal) => !refusal).length;
}

test("admits exactly the limit at once and refills it evenly within a minute", () => {
  const clock = manualClock();
  const throttle = new AddressThrottle({ clock, limits: { form: 60 } });
  expect(passing(throttle, 100, "192.0.2.1")).toBe(60);
  const refusal = throttle.take("form", "192.0.2.1");
  expect(refusal).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 1 });
  clock.advance(10_000);
  expect(passing(throttle, 100, "192.0.2.1")).toBe(10);
  clock.advance(3_600_000);
  expect(passing(throttle, 100, "192.0.2.1")).toBe(60);
});

test("admits a client that waits as long as a refusal says", () => {
  const clock = manualClock();
  const throttle = new AddressThrottle({ clock, limits: { form: 7 } });
  passing(throttle, 7, "192.0.2.1");
  for (let i = 0; i < 50; i++) {
    clock.advance((throttle.take("form", "192.0.2.1")?.retryAfterSeconds ?? 0) * 1_000);
    expect(throttle.take("form", "192.0.2.1")).toBeUndefined();
  }
});

// hardening: L6
test("counts each limit and address apart, and the addresses of one IPv6 subnet together", () => {
  const throttle = new AddressThrottle({ clock: manualClock(), limits: { form: 2 } });
  expect(passing(throttle, 3, "192.0.2.1")).toBe(2);
  expect(passing(throttle, 3, "192.0.2.2")).toBe(2);
  expect(throttle.take("page", "192.0.2.1")).toBeUndefined();
  expect(passing(throttle, 1, "2001:db8:1:2::1") + passing(throttle, 3, "2001:db8:1:2:ffff::9")).toBe(2);
  expect(passing(throttle, 3, "2001:db8:1:3::1")).toBe(2);
});

// hardening: L6
test("remembers the last 50,000 networks and no earlier ones", () => {
  const throttle = new AddressThrottle({ clock: manualClock(), limits: { form: 1 } });
  const askFrom = (count: number) => {
    for (let n = 0; n < count; n++) throttle.take("page", `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  };
  expect(passing(throttle, 2, "192.0.2.1")).toBe(1);
  askFrom(49_999);
  // A refused request counts as a use of the entry, so the entry stays in the map.
  expect(passing(throttle, 1, "192.0.2.1")).toBe(0);
  askFrom(49_999);
  expect(passing(throttle, 1, "192.0.2.1")).toBe(0);
  askFrom(50_000);
  expect(passing(throttle, 1, "192.0.2.1")).toBe(1);
});

// hardening: L6
test("needs no more memory for half a million networks than for the remembered ones", () => {
  // This runs in a separate process, because the memory that other tests leave behind would count in this one.
  const script = `
    const { AddressThrottle } = require(${JSON.stringify(join(import.meta.dir, "address-throttle.ts"))});
    const throttle = new AddressThrottle({ clock: { monotonicMs: () => 0 } });
    const heapAfter = async (from, to) => {
      for (let n = from; n < to; n++) throttle.take("page", "10." + (n >> 16) + "." + ((n >> 8) & 255) + "." + (n & 255));
      // Where nothing is under way: what a stack still points to is not collected, nor what that leads to.
      await new Promise(setImmediate);
      Bun.gc(true);
      return process.memoryUsage().heapUsed;
    };
    const before = await heapAfter(0, 100_000);
    console.log((await heapAfter(100_000, 500_000)) - before);
  `;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { stderr: "inherit" });
  expect(Number.parseInt(String(stdout), 10)).toBeLessThan(5_000_000);
});

test("sets limits that suffice for an office behind one address and for monitors", () => {
  // The limits suffice for 200 people who open the dashboard, with 30 files each, in one minute.
  expect(addressLimits.file).toBeGreaterThanOrEqual(200 * 30);
  expect(addressLimits.page).toBeGreaterThanOrEqual(200 * 5);
  // The limit suffices for 20 load balancers that send two requests a second.
  expect(addressLimits.monitor).toBeGreaterThanOrEqual(20 * 120);
});

describe("an address that presented too many unknown credentials", () => {
  const tooMany = "Too many API keys and sessions that are nobody's";
  const nothing = async () => undefined;
  let clock: ManualClock;
  let unknown: UnknownCredentials;

  beforeEach(async () => {
    clock = manualClock();
    unknown = new UnknownCredentials(new AddressThrottle({ clock, limits: { unknown: 3 } }));
    for (let i = 0; i < 3; i++) expect(await unknown.find(`made up ${i}`, "192.0.2.1", nothing)).toBeUndefined();
  });

  test("refuses an address with too many unknown credentials until the stated time, and no other address", async () => {
    expect(unknown.find("made up 4", "192.0.2.1", nothing)).rejects.toThrow(tooMany);
    expect(await unknown.find("made up 4", "192.0.2.2", nothing)).toBeUndefined();
    clock.advance(20_000);
    expect(await unknown.find("made up 4", "192.0.2.1", nothing)).toBeUndefined();
  });

  test("still admits valid credentials from an address with too many unknown ones", async () => {
    expect(await unknown.find("good", "192.0.2.1", async () => "somebody")).toBe("somebody");
    unknown.found("signed in here");
    expect(await unknown.find("signed in here", "192.0.2.1", async () => "somebody")).toBe("somebody");
  });

  test("looks up a bounded number of unknown credentials at a time, without delaying known ones", async () => {
    unknown.found("known");
    let running = 0;
    let most = 0;
    let looks = 0;
    const { promise: held, resolve: goOn } = Promise.withResolvers<void>();
    const look = async () => {
      looks++;
      most = Math.max(most, ++running);
      await held;
      running--;
      return undefined;
    };
    const asked = Array.from({ length: 1_000 }, (_, i) => unknown.find(`more ${i}`, "192.0.2.1", look));
    const outcomes = Promise.allSettled(asked);
    expect(await unknown.find("known", "192.0.2.1", async () => "somebody")).toBe("somebody");
    goOn();
    expect((await outcomes).every(({ status }) => status === "rejected")).toBe(true);
    expect({ looks, most }).toEqual({ looks: 101, most: 1 });
  });
});
