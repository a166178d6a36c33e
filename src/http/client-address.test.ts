// Where a request comes from: forwarded addresses are believed of trusted proxies only, and local means local.
import { describe, expect, test } from "bun:test";
import type { BlockList } from "node:net";
import { incoming } from "../../tests/support/exchange.ts";
import { withinMs } from "../../tests/support/long.ts";
import * as subject from "./client-address.ts";

const { trustedProxies } = subject;
const request = (headers: Record<string, string> = {}, target = "/v1/models") =>
  incoming({ target, headers: { host: "127.0.0.1:7545", ...headers } });
const forwarded = (value: string) => request({ "x-forwarded-for": value });
const clientAddress = (req: ReturnType<typeof request>, peer: string, trusted: BlockList) =>
  subject.clientAddress({ ...req, peer }, trusted);
const isLocalRequest = (req: ReturnType<typeof request>, peer: string) => subject.isLocalRequest({ ...req, peer });

describe("the client's address", () => {
  test("is the peer where no proxy is trusted, whatever the header says", () => {
    const none = trustedProxies([]);
    expect(clientAddress(forwarded("1.2.3.4"), "10.0.0.1", none)).toBe("10.0.0.1");
    expect(clientAddress(forwarded("1.2.3.4"), "127.0.0.1", none)).toBe("127.0.0.1");
  });

  test("is what a trusted proxy saw: the last hop that is no trusted proxy, not the first that was claimed", () => {
    const trusted = trustedProxies(["10.0.0.0/8", "192.0.2.7", "fd00::/8"]);
    expect(clientAddress(forwarded("203.0.113.9"), "10.0.0.1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("1.1.1.1, 203.0.113.9"), "10.0.0.1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("203.0.113.9, 10.9.9.9, 192.0.2.7"), "fd00::1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("203.0.113.9, 198.51.100.1"), "192.0.2.7", trusted)).toBe("198.51.100.1");
    expect(clientAddress(forwarded("2001:db8::1"), "192.0.2.7", trusted)).toBe("2001:db8::1");
  });

  test("is the peer of a trusted proxy where nothing useful was forwarded", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    for (const value of ["", "unknown", "_hidden", "1.2.3.4:80:80", "evil\u0020example", ","]) {
      expect(clientAddress(forwarded(value), "10.0.0.1", trusted)).toBe("10.0.0.1");
    }
    expect(clientAddress(request(), "10.0.0.1", trusted)).toBe("10.0.0.1");
    expect(clientAddress(forwarded("10.1.1.1, 10.2.2.2"), "10.0.0.1", trusted)).toBe("10.1.1.1");
    expect(clientAddress(forwarded("203.0.113.9, junk, 10.2.2.2"), "10.0.0.1", trusted)).toBe("10.2.2.2");
  });

  test("of an IPv4 peer in IPv6 clothes is its IPv4 address, which a range of IPv4 addresses covers", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    expect(clientAddress(request(), "::ffff:203.0.113.9", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("203.0.113.9"), "::ffff:10.0.0.1", trusted)).toBe("203.0.113.9");
    expect(clientAddress(forwarded("::ffff:203.0.113.9"), "10.0.0.1", trusted)).toBe("203.0.113.9");
  });

  test("loses the port that some proxies write behind it", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    expect(clientAddress(forwarded("192.0.2.7:4711"), "10.0.0.1", trusted)).toBe("192.0.2.7");
    expect(clientAddress(forwarded("[2001:db8::1]:443"), "10.0.0.1", trusted)).toBe("2001:db8::1");
    expect(clientAddress(forwarded("[2001:db8::1]"), "10.0.0.1", trusted)).toBe("2001:db8::1");
    expect(clientAddress(forwarded("evil:1"), "10.0.0.1", trusted)).toBe("10.0.0.1");
  });

  test("survives a header of 100,000 hops", () => {
    const trusted = trustedProxies(["10.0.0.0/8"]);
    const startedMs = performance.now();
    expect(clientAddress(forwarded("10.1.1.1,".repeat(100_000)), "10.0.0.1", trusted)).toMatch(/^10\./);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(1_000));
  });
});

describe("a local request", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1:7545"],
    ["127.0.0.1", "localhost"],
    ["::1", "[::1]:7545"],
    ["::ffff:127.0.0.1", "LOCALHOST:1"],
    ["127.9.8.7", "127.1.2.3"],
  ])("comes from %s and asks for %s", (peer, host) => {
    expect(isLocalRequest(request({ host }), peer)).toBe(true);
  });

  test.each(["10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "", "1127.0.0.1", "::127.0.0.1", "localhost"])(
    "does not come from %p",
    (peer) => {
      expect(isLocalRequest(request(), peer)).toBe(false);
    },
  );

  test.each([
    "evil.example",
    "127.0.0.1.evil.example",
    "127.1",
    "::1",
    "[::1",
    "localhost.",
    "",
    "127.0.0.1:",
    "0.0.0.0",
  ])("does not ask for the Host %p", (host) => {
    expect(isLocalRequest(request({ host }), "127.0.0.1")).toBe(false);
  });

  test.each(["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-by"])(
    "bears no %s, not even an empty one",
    (name) => {
      expect(isLocalRequest(request({ [name]: "" }), "127.0.0.1")).toBe(false);
      expect(isLocalRequest(request({ [name]: "127.0.0.1" }), "127.0.0.1")).toBe(false);
    },
  );

  test.each([
    ["http://127.0.0.1:7545/v1/models", true],
    ["http://localhost/", true],
    ["HTTP://[::1]:7545?x", true],
    ["http://evil.example/v1/models", false],
    ["http://127.0.0.1:7545@evil.example/", false],
    ["http://evil.example@127.0.0.1/", false],
    ["http:///v1/models", false],
    ["*", false],
  ])("whose target is %p is one: %p", (target, expected) => {
    expect(isLocalRequest(request({}, target), "127.0.0.1")).toBe(expected);
  });
});
