// Tests the client's address: forwarded addresses count only from trusted proxies, and invalid ones are never an
// address.
import { describe, expect, test } from "bun:test";
import type { BlockList } from "node:net";
import { incoming } from "../../../tests/support/exchange.ts";
import { withinMs } from "../../../tests/support/long.ts";
import { type IpRange, parseRange, rangesContain } from "../../base/text/ip-range.ts";
import * as subject from "./client-address.ts";

const { trustedProxies } = subject;
const request = (headers: Record<string, string> = {}) =>
  incoming({ target: "/v1/models", headers: { host: "127.0.0.1:7545", ...headers } });
const forwarded = (value: string) => request({ "x-forwarded-for": value });
const clientAddress = (req: ReturnType<typeof request>, peer: string, trusted: BlockList) =>
  subject.clientAddress({ ...req, peer }, trusted);

const range = (text: string): IpRange => parseRange(text) ?? { words: [], prefix: 0 };

describe("the client's address", () => {
  test("uses the peer as the client's address without trusted proxies, whatever the header says", () => {
    const none = trustedProxies([]);
    expect(clientAddress(forwarded("1.2.3.4"), "10.0.0.1", none)).toBe("10.0.0.1");
    expect(clientAddress(forwarded("1.2.3.4"), "127.0.0.1", none)).toBe("127.0.0.1");
  });

  test("uses the last untrusted hop as the client's address, not the first claimed one", () => {
    const trusted = trustedProxies(["10.0.0.0/8", "192.0.2.7", "fd00::/8"]);
    expect(clientAddress(forwarded("203.0.113.9"), "10.0.0.1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("1.1.1.1, 203.0.113.9"), "10.0.0.1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("203.0.113.9, 10.9.9.9, 192.0.2.7"), "fd00::1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("203.0.113.9, 198.51.100.1"), "192.0.2.7", trusted)).toBe("198.51.100.1");
    expect(clientAddress(forwarded("2001:db8::1"), "192.0.2.7", trusted)).toBe("2001:db8::1");
  });

  test("uses a trusted proxy's own address if it forwards for none or for trusted ones only", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    expect(clientAddress(request(), "10.0.0.1", trusted)).toBe("10.0.0.1");
    expect(clientAddress(forwarded("10.1.1.1, 10.2.2.2"), "10.0.0.1", trusted)).toBe("10.1.1.1");
  });

  // hardening: K3
  test.each([
    "",
    " ",
    ",",
    "unknown",
    "_hidden",
    "evil example",
    "evil:1",
    "1.2.3.4:80:80",
    "1.2.3.4:123456",
    "01.2.3.4",
    "1.2.3",
    "1.2.3.4/8",
    "fe80::1%eth0",
    "[::1",
    "::1]",
    "203.0.113.9, junk",
    "203.0.113.9,",
    "203.0.113.9, junk, 10.2.2.2",
    ", 10.2.2.2",
  ])("uses no client address if a trusted proxy forwards %p", (value) => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    expect(clientAddress(forwarded(value), "10.0.0.1", trusted)).toBe(subject.unknownAddress);
    // No range of addresses contains the unknown address, either.
    expect(rangesContain([range("0.0.0.0/0"), range("::/0")], subject.unknownAddress)).toBe(false);
  });

  test("reduces an IPv4-mapped IPv6 peer to its IPv4 address, which IPv4 ranges cover", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    expect(clientAddress(request(), "::ffff:203.0.113.9", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("203.0.113.9"), "::ffff:10.0.0.1", trusted)).toBe("203.0.113.9");
    for (const spelling of [
      "::ffff:203.0.113.9",
      "::FFFF:203.0.113.9",
      "0:0:0:0:0:ffff:cb00:7109",
      "[::ffff:cb00:7109]:80",
    ]) {
      expect(clientAddress(forwarded(spelling), "10.0.0.1", trusted)).toBe("203.0.113.9");
    }
    // A trusted proxy that is written as an IPv4-mapped address is skipped as well.
    expect(clientAddress(forwarded("203.0.113.9, ::ffff:a01:203"), "10.0.0.1", trusted)).toBe("203.0.113.9");
  });

  // hardening: K3
  test("normalizes the spelling of a client's IPv6 address", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    for (const spelling of ["2001:DB8:0:0::1", "2001:0db8::0001", "[2001:db8::1]:443"]) {
      expect(clientAddress(forwarded(spelling), "10.0.0.1", trusted)).toBe("2001:db8::1");
    }
  });

  test("removes the port that some proxies append to the client's address", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    expect(clientAddress(forwarded("192.0.2.7:4711"), "10.0.0.1", trusted)).toBe("192.0.2.7");
    expect(clientAddress(forwarded("[2001:db8::1]:443"), "10.0.0.1", trusted)).toBe("2001:db8::1");
    expect(clientAddress(forwarded("[2001:db8::1]"), "10.0.0.1", trusted)).toBe("2001:db8::1");
  });

  test("reads the client's address from a header of 100,000 hops", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    const startedMs = performance.now();
    expect(clientAddress(forwarded(`${"10.1.1.1,".repeat(100_000)}10.1.1.1`), "10.0.0.1", trusted)).toBe("10.1.1.1");
    expect(clientAddress(forwarded("10.1.1.1,".repeat(100_000)), "10.0.0.1", trusted)).toBe(subject.unknownAddress);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(1_000));
  });
});
