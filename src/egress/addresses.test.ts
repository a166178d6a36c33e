// Addresses of URLs that a user chose: which of them the gateway may connect to.
import { expect, test } from "bun:test";
import { addressesOf, type EgressRules } from "./addresses.ts";

const publicly = async () => ["203.0.114.1", "2001:4860::1"];
const here = async () => ["127.0.0.1"];

async function outcome(url: string, rules: EgressRules, resolve: () => Promise<string[]>): Promise<string> {
  return await addressesOf(new URL(url), rules, resolve).then(
    (found) => found.join(),
    (error: Error) => error.message,
  );
}

test.each<[string, EgressRules, () => Promise<string[]>, string]>([
  ["https://app.example/", { allowLoopback: false }, publicly, "203.0.114.1,2001:4860::1"],
  ["http://app.example/", { allowLoopback: false }, publicly, "not_https"],
  ["http://app.example/", { allowLoopback: true }, publicly, "not_https"],
  ["http://app.example/", { allowLoopback: true }, async () => ["127.0.0.1", "203.0.114.1"], "not_https"],
  ["http://localhost/", { allowLoopback: true }, here, "127.0.0.1"],
  ["https://localhost/", { allowLoopback: true }, here, "127.0.0.1"],
  ["https://localhost/", { allowLoopback: false }, here, "address_not_public"],
  ["https://app.example/", { allowLoopback: false }, async () => ["203.0.114.1", "10.0.0.1"], "address_not_public"],
  ["https://app.example/", { allowLoopback: true }, async () => ["203.0.114.1", "10.0.0.1"], "address_not_public"],
  ["https://app.example/", { allowLoopback: false }, async () => [], "name_not_found"],
  ["http://10.0.0.1:8000/x", { allowLoopback: false, named: ["http://10.0.0.1:8000"] }, here, "10.0.0.1"],
  ["http://10.0.0.1:8001/x", { allowLoopback: false, named: ["http://10.0.0.1:8000"] }, here, "address_not_public"],
  ["http://203.0.114.1/", { allowLoopback: false, named: ["https://203.0.114.1"] }, here, "not_https"],
])("resolves %s under the rules %j to the permitted addresses or a refusal", async (url, rules, resolve, expected) => {
  expect(await outcome(url, rules, resolve)).toBe(expected);
});
