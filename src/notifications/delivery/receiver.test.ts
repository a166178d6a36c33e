// Webhook URLs: allowed addresses, and known spellings that bypass filters.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../base/errors.ts";
import { addressesOf, EgressRefused, type EgressRules, permittedNetworks } from "../../egress/addresses.ts";
import { isPublicAddress } from "../../egress/public-address.ts";
import { receiverUrl } from "./receiver.ts";

const production = { allowLoopback: false };
const networked = { allowLoopback: false, networks: permittedNetworks(["am.internal", "10.20.0.0/16"]) };
const development = { allowLoopback: true };

function refusal(url: string, rules: EgressRules = production): string | undefined {
  try {
    receiverUrl(url, rules);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError && error.param === "url") return error.message;
    throw error;
  }
}

describe("addresses", () => {
  test.each([
    ...["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.1", "198.17.255.255"],
    ...[
      "192.0.1.1",
      "198.20.0.1",
      "223.255.255.254",
      "2606:4700:4700::1111",
      "2a00:1450:4001::1",
      "2001:4860:4860::8888",
    ],
  ])("recognizes %s as a public address", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255"],
    ...["169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1"],
    ...["192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "255.255.255.255"],
    ...["::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:7f00:1", "64:ff9b::8.8.8.8"],
    ...["64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:2::1", "2001:10::1"],
    ...["2001:20::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd12::1"],
    ...[
      "fe80::1",
      "fe80::1%eth0",
      "fec0::1",
      "ff02::1",
      "",
      "localhost",
      "8.8.8.8/32",
      "010.8.8.8",
      "0x8.8.8.8",
      "134744072",
    ],
  ])("does not recognize %p as a public address", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("the address of a receiver", () => {
  test.each([
    ["https://hooks.example", "https://hooks.example/"],
    ["https://hooks.example:8443/a?b=c", "https://hooks.example:8443/a?b=c"],
    ["HTTPS://8.8.8.8/x", "https://8.8.8.8/x"],
    ["https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"],
  ])("accepts %p as a receiver's address", (url, expected) => {
    expect(receiverUrl(url, production)).toBe(expected);
  });

  test.each([
    ...["http://hooks.example/", "ftp://hooks.example/", "file:///etc/passwd", "hooks.example", "", "https://"],
    ...["https://user@hooks.example/", "https://user:pass@hooks.example/", "https://:pass@hooks.example/"],
    ...["https://hooks.example/#part"],
    ...[
      "https://localhost/",
      "https://localhost./",
      "https://a.localhost/",
      "https://LOCALHOST/",
      "https://127.0.0.1/",
    ],
    ...["https://127.1/", "https://0x7f.1/", "https://0177.0.0.1/", "https://2130706433/", "https://0x7f000001/"],
    ...["https://017700000001/", "https://127.0.0.1./", "https://1²7.0.0.1/", "https://①②⑦.0.0.1/", "https://0/"],
    ...[
      "https://10.1/",
      "https://0xa9fea9fe/",
      "https://169.254.169.254/latest/meta-data",
      "https://[::1]/",
      "https://[::]/",
    ],
    ...[
      "https://[::ffff:127.0.0.1]/",
      "https://[::ffff:808:808]/",
      "https://[64:ff9b::a00:1]/",
      "https://[2002:a00:1::]/",
    ],
    ...[
      "https://[fd00::1]/",
      "https://[fe80::1]/",
      "https://[2001:0:4136:e378::1]/",
      "https://192.168.1.1\\@hooks.example/",
    ],
    ...["https://127。0。0。1/", "https://%31%32%37.0.0.1/"],
  ])("refuses %p as a receiver's address in production", (url) => {
    expect(refusal(url)).toBeString();
  });

  test("refuses a URL of more than 2,048 characters", () => {
    expect(refusal(`https://hooks.example/${"a".repeat(2_048)}`)).toContain("2048 characters");
  });

  test("permits loopback in development if configured, and no other private address", () => {
    for (const url of ["http://127.0.0.1:9000/", "http://localhost:9000/", "https://[::1]/", "http://2130706433/"]) {
      expect([url, refusal(url, development)]).toEqual([url, undefined]);
      expect([url, refusal(url)]).not.toEqual([url, undefined]);
    }
    for (const url of [
      "http://10.0.0.1/",
      "http://hooks.example/",
      "https://192.168.0.1/",
      "http://[::ffff:127.0.0.1]/",
    ]) {
      expect([url, refusal(url, development)]).not.toEqual([url, undefined]);
    }
  });
});

describe("a name", () => {
  const url = new URL("https://hooks.example/");
  const leadsTo = (...addresses: string[]) => addressesOf(url, production, async () => addresses);

  // hardening: F36
  test("refuses a name if any of its addresses is not public", async () => {
    for (const inside of ["10.0.0.1", "127.0.0.1", "::1", "::ffff:8.8.8.8", "fe80::1%eth0", "100.64.0.1"]) {
      const error = await leadsTo("8.8.8.8", inside).catch((reason: unknown) => reason);
      expect([inside, String(error)]).toEqual([inside, String(new EgressRefused("address_not_public"))]);
    }
  });

  test("resolves a name to its addresses, those of IPv4 first", async () => {
    expect(await leadsTo("2606:4700::1", "8.8.8.8", "1.1.1.1")).toEqual(["8.8.8.8", "1.1.1.1", "2606:4700::1"]);
  });

  test("refuses a name without addresses", async () => {
    expect(String(await leadsTo().catch((reason: unknown) => reason))).toContain("name_not_found");
  });
});

describe("permitted private networks", () => {
  test.each(["http://am.internal:9093/x", "https://am.internal/", "http://10.20.3.4/x", "http://other.internal/x"])(
    "accepts %s as a URL, whose addresses are checked at each attempt",
    (url) => expect(refusal(url, networked)).toBeUndefined(),
  );

  test.each(["http://10.21.0.1/", "https://127.0.0.1/", "http://localhost/", "https://169.254.169.254/"])(
    "refuses %s, which no entry permits",
    (url) => expect(refusal(url, networked)).toBeString(),
  );

  test("connects to a permitted host or range, and to no other private address", async () => {
    const found = (url: string, addresses: string[], rules: EgressRules = networked) =>
      addressesOf(new URL(url), rules, async () => addresses).catch((error: EgressRefused) => error.message);
    expect(await found("http://am.internal/", ["192.168.1.1"])).toEqual(["192.168.1.1"]);
    expect(await found("http://other.internal/", ["10.20.0.7"])).toEqual(["10.20.0.7"]);
    expect(await found("http://other.internal/", ["10.20.0.7", "192.168.1.1"])).toBe("address_not_public");
    expect(await found("http://other.internal/", ["203.0.114.1"])).toBe("not_https");
    expect(await found("https://other.internal/", ["192.168.1.1"])).toBe("address_not_public");
    expect(await found("http://am.internal/", ["192.168.1.1"], production)).toBe("address_not_public");
  });
});
