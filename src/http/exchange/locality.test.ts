// Tests which requests count as local: without a key only those to the machine's own names, with a development key also
// those to the names that containers use.
import { describe, expect, test } from "bun:test";
import { incoming } from "../../../tests/support/exchange.ts";
import { Locality } from "./locality.ts";

const request = (headers: Record<string, string> = {}, target = "/v1/models") =>
  incoming({ target, headers: { host: "127.0.0.1:7545", ...headers } });
const strict = new Locality([]);
const isLocal = (req: ReturnType<typeof request>, peer: string, by = strict) => by.isLocal({ ...req, peer });
const whyNot = (req: ReturnType<typeof request>, peer = "127.0.0.1", by = strict) => by.whyNotLocal({ ...req, peer });

describe("a local request", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1:7545"],
    ["127.0.0.1", "localhost"],
    ["::1", "[::1]:7545"],
    ["::ffff:127.0.0.1", "LOCALHOST:1"],
    ["127.9.8.7", "127.1.2.3"],
  ])("treats a request from %s to the host %s as local", (peer, host) => {
    expect(isLocal(request({ host }), peer)).toBe(true);
  });

  test.each(["10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "", "1127.0.0.1", "::127.0.0.1", "localhost"])(
    "does not treat a request from %p as local",
    (peer) => {
      expect(isLocal(request(), peer)).toBe(false);
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
  ])("does not treat a request to the Host %p as local", (host) => {
    expect(isLocal(request({ host }), "127.0.0.1")).toBe(false);
  });

  test.each(["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-by"])(
    "does not treat a request with the header %s as local, even if it is empty",
    (name) => {
      expect(isLocal(request({ [name]: "" }), "127.0.0.1")).toBe(false);
      expect(isLocal(request({ [name]: "127.0.0.1" }), "127.0.0.1")).toBe(false);
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
  ])("decides whether a request with the target %p is local: %p", (target, expected) => {
    expect(isLocal(request({}, target), "127.0.0.1")).toBe(expected);
  });
});

const otherNames = [
  "host.docker.internal:7545",
  "host.containers.internal",
  "HOST.DOCKER.INTERNAL",
  "gateway",
  "my_service:80",
  "devbox.local:7545",
  "devbox.lan",
  "devbox.home.arpa",
  "192.168.1.20:7545",
  "172.17.0.1:7545",
  "169.254.1.1",
  "10.1.2.3",
  "0.0.0.0:7545",
  "[::]:7545",
  "[fd00::1]:7545",
  "[fe80::1]",
  "localhost.",
  "",
];

describe("a development key", () => {
  // hardening: K2
  test.each(otherNames)("accepts a dev key locally under the name %p, which opens nothing without a key", (host) => {
    expect(whyNot(request({ host }))).toBeUndefined();
    expect(isLocal(request({ host }), "127.0.0.1")).toBe(false);
  });

  test("accepts a dev key without a Host header, as HTTP/1.0 allows", () => {
    expect(strict.whyNotLocal(incoming({ target: "/v1/models" }))).toBeUndefined();
    expect(strict.isLocal(incoming({ target: "/v1/models" }))).toBe(false);
  });

  // hardening: K2
  test.each([
    "evil.example",
    "abc.ngrok.app",
    "bore.pub:1234",
    "127.0.0.1.evil.example",
    "172.32.0.1",
    "203.0.113.9",
    "[2001:db8::1]",
    "host.docker.internal.evil.example",
    "127.1",
    "127.0.0.1:",
  ])("refuses a dev key under the public name %p, with a remedy", (host) => {
    const why = whyNot(request({ host }));
    expect(why).toContain("allowed_hosts");
    expect(why).toContain(host.replace(/:\d+$/, ""));
  });

  // hardening: K2
  test.each(["10.0.0.1", "172.17.0.2", "::ffff:192.168.1.2", "fe80::1", "", "localhost"])(
    "refuses a dev key from the other machine %p under any name",
    (peer) => {
      for (const host of ["127.0.0.1:7545", "host.docker.internal"]) {
        expect(whyNot(request({ host }), peer)).toContain("comes from another one");
      }
    },
  );

  // hardening: K2
  test.each(["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip"])(
    "refuses a dev key if the header %s shows a tunnel or proxy",
    (name) => {
      for (const host of ["127.0.0.1:7545", "host.docker.internal", ""]) {
        expect(whyNot(request({ host, [name]: "127.0.0.1" }))).toContain(name);
      }
    },
  );

  // hardening: K2
  test.each([
    { origin: "http://rebound.local:7545" },
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "" },
    { origin: "http://127.0.0.1.evil.example" },
    { origin: "http://localhost@evil.example" },
    { "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "cross-site" },
  ] as Record<string, string>[])("refuses a dev key for a foreign page (%p) under another name", (headers) => {
    expect(whyNot(request({ host: "rebound.local:7545", ...headers }))).toContain("allowed_hosts");
  });

  test("accepts a dev key for a local page and for the address bar", () => {
    for (const headers of [
      { origin: "http://localhost:3000" },
      { origin: "http://127.0.0.1:8080", "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "none" },
    ] as Record<string, string>[]) {
      expect(whyNot(request({ host: "host.docker.internal:7545", ...headers }))).toBeUndefined();
    }
  });

  test("refuses a dev key if the target names a public host, despite a local Host header", () => {
    expect(whyNot(request({}, "http://evil.example/v1/models"))).toContain("evil.example");
    expect(whyNot(request({}, "http://host.docker.internal/v1/models"))).toBeUndefined();
  });
});

describe("a host in allowed_hosts", () => {
  const by = new Locality(["Devbox.Example.com", "203.0.113.9", "2001:db8::1"]);

  test.each(["devbox.example.com", "DEVBOX.example.com:7545", "203.0.113.9:7545", "[2001:db8::1]:7545"])(
    "treats a host in allowed_hosts as local, with a key and without: %p",
    (host) => {
      expect(isLocal(request({ host }), "127.0.0.1", by)).toBe(true);
      expect(whyNot(request({ host, origin: `http://${host}` }), "127.0.0.1", by)).toBeUndefined();
    },
  );

  test("does not open a host in allowed_hosts to other machines, through proxies or as a part of a name", () => {
    const host = "devbox.example.com";
    expect(isLocal(request({ host }), "10.0.0.1", by)).toBe(false);
    expect(whyNot(request({ host }), "10.0.0.1", by)).toBeDefined();
    expect(isLocal(request({ host, "x-forwarded-for": "127.0.0.1" }), "127.0.0.1", by)).toBe(false);
    for (const other of ["x.devbox.example.com", "devbox.example.com.evil.example", "devbox.example.comx"]) {
      expect(isLocal(request({ host: other }), "127.0.0.1", by)).toBe(false);
      expect(whyNot(request({ host: other }), "127.0.0.1", by)).toBeDefined();
    }
  });
});
