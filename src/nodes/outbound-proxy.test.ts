// Tests the choice of a proxy from the environment: the right one for each URL, or none for an exempt host.
import { expect, test } from "bun:test";
import { proxyFor } from "./outbound-proxy.ts";

const proxies = { HTTPS_PROXY: "http://secure:1", HTTP_PROXY: "plain:2" };

test("chooses a proxy by scheme, then ALL_PROXY, with lower-case names first", () => {
  expect(proxyFor("https://a.example", proxies)).toBe("http://secure:1");
  expect(proxyFor("http://a.example", proxies)).toBe("http://plain:2");
  expect(proxyFor("https://a.example", { ALL_PROXY: "http://all" })).toBe("http://all");
  expect(proxyFor("https://a.example", { ...proxies, https_proxy: "http://lower" })).toBe("http://lower");
  expect(proxyFor("https://a.example", { HTTPS_PROXY: "" })).toBeUndefined();
  expect(proxyFor("https://a.example", {})).toBeUndefined();
});

test("connects directly to this machine and to names in NO_PROXY", () => {
  const direct = (url: string, list: string) => proxyFor(url, { ...proxies, NO_PROXY: list }) === undefined;
  for (const url of ["http://localhost:1", "https://127.0.0.1", "http://[::1]:8"]) expect(direct(url, "")).toBe(true);
  expect(direct("https://a.example", "b.example, A.example")).toBe(true);
  expect(direct("https://x.a.example", "a.example")).toBe(true);
  expect(direct("https://x.a.example", ".a.example")).toBe(true);
  expect(direct("https://x.a.example", "*.a.example")).toBe(true);
  expect(direct("https://xa.example", "a.example")).toBe(false);
  expect(direct("https://a.example", "a.example:443")).toBe(true);
  expect(direct("https://a.example:8443", "a.example:443")).toBe(false);
  expect(direct("https://a.example", "*")).toBe(true);
  expect(direct("https://a.example", " , ,")).toBe(false);
});
