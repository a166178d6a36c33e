// Tests the proof of a node's identity: each connection needs one, nothing is accepted before it, and an earlier proof
// is useless.
import { describe, expect, test } from "bun:test";
import {
  messageOf,
  type ProofChanges,
  proofOf,
  type RawEnd,
  rawNode,
  welcomedNode,
} from "../../../tests/support/tunnel/raw-ends.ts";
import {
  gatewayUrl,
  startGateway,
  startNode,
  type TestGateway,
  until,
} from "../../../tests/support/tunnel/tunnel-fixture.ts";
import { newNodeKey, signProof, verifyProof } from "../identity.ts";
import { nodeConnectPath, tunnelCloseCodes, tunnelProtocol } from "./contract.ts";
import { messageTypes } from "./messages.ts";

async function proving(gateway: TestGateway, changes: ProofChanges = {}, id = "node_a") {
  const key = newNodeKey();
  if (!gateway.keys.has(id)) gateway.keys.set(id, { publicKey: key.publicKey });
  const node = await rawNode(gateway);
  const proof = await proofOf(node, id, key.privateKey, changes);
  node.send(messageTypes.proof, 0, proof);
  return { node, proof };
}

describe("refused nodes", () => {
  const other = newNodeKey();
  const cases: [what: string, changes: ProofChanges, code: number][] = [
    ["a signature by another key", { privateKey: other.privateKey }, tunnelCloseCodes.unauthenticated],
    [
      "a signature for another gateway",
      { text: { gateway: "https://evil.example" } },
      tunnelCloseCodes.unauthenticated,
    ],
    ["a signature for another nonce", { text: { nonce: "x".repeat(43) } }, tunnelCloseCodes.unauthenticated],
    ["a signature for another node", { text: { nodeId: "node_b" } }, tunnelCloseCodes.unauthenticated],
    ["a signature for another protocol", { text: { protocol: "headrace.node.v0" } }, tunnelCloseCodes.unauthenticated],
    ["a signature that is none", { fields: { signature: "AAAA" } }, tunnelCloseCodes.unauthenticated],
    ["another major version", { fields: { major: 2 } }, tunnelCloseCodes.version],
    ["a proof without a node", { fields: { node: "" } }, tunnelCloseCodes.protocol],
    ["a node with a name beyond bounds", { fields: { node: "n".repeat(129) } }, tunnelCloseCodes.protocol],
    ["a window of nothing", { fields: { window: 0 } }, tunnelCloseCodes.protocol],
    ["a window beyond bounds", { fields: { window: 1e12 } }, tunnelCloseCodes.protocol],
    ["a window that is no number", { fields: { window: "65536" } }, tunnelCloseCodes.protocol],
  ];
  for (const [what, changes, code] of cases) {
    test(what, async () => {
      await using gateway = startGateway();
      const { node } = await proving(gateway, changes);
      expect((await node.end()).code).toBe(code);
      expect(node.of(messageTypes.welcome)).toEqual([]);
      expect(gateway.ends).toEqual([]);
      await until(() => gateway.warnings.length === 1, "the line in the log");
    });
  }

  test("refuses an unknown and a revoked node, each with its code", async () => {
    await using gateway = startGateway();
    gateway.keys.set("revoked", { refused: "revoked" });
    gateway.keys.set("unknown", { refused: "unknown" });
    const revoked = await proving(gateway, {}, "revoked");
    expect((await revoked.node.end()).code).toBe(tunnelCloseCodes.revoked);
    const unknown = await proving(gateway, {}, "unknown");
    expect((await unknown.node.end()).code).toBe(tunnelCloseCodes.unknownNode);
  });

  test("refuses a node that cannot be looked up now, but not for good", async () => {
    await using gateway = startGateway({ findKey: () => Promise.reject(new Error("no database")) });
    const { node } = await proving(gateway);
    expect((await node.end()).code).toBe(tunnelCloseCodes.internal);
    await until(() => gateway.warnings.length === 1, "the line in the log");
    expect(gateway.warnings[0]?.["detail"]).toContain("no database");
  });
});

test("rejects a proof that was used on another connection", async () => {
  await using gateway = startGateway();
  const key = newNodeKey();
  gateway.keys.set("node_a", { publicKey: key.publicKey });
  const first = await rawNode(gateway);
  const proof = await proofOf(first, "node_a", key.privateKey);
  first.send(messageTypes.proof, 0, proof);
  await first.received(messageTypes.welcome);
  const second = await rawNode(gateway);
  await second.received(messageTypes.hello);
  second.send(messageTypes.proof, 0, proof);
  expect((await second.end()).code).toBe(tunnelCloseCodes.unauthenticated);
  expect(gateway.ends.length).toBe(1);
  expect(gateway.ends[0]?.closed).toBeUndefined();
});

describe("connections before the proof", () => {
  const early: [what: string, act: (node: RawEnd) => void][] = [
    ["an announcement", (node) => node.send(messageTypes.announce, 0, '{"version":"1","models":[]}')],
    ["a heartbeat", (node) => node.send(messageTypes.ping, 0, "abcd")],
    ["an answer", (node) => node.send(messageTypes.data, 1, "x")],
    ["a message of an unknown type", (node) => node.send(0x7f, 0)],
    ["a proof on a stream", (node) => node.send(messageTypes.proof, 7, "{}")],
    ["a proof that is no JSON", (node) => node.send(messageTypes.proof, 0, "{")],
    ["a proof that is a list", (node) => node.send(messageTypes.proof, 0, "[]")],
    ["a message without a head", (node) => node.link.send(Buffer.from("abcd"))],
    ["an empty message", (node) => node.link.send(Buffer.alloc(0))],
  ];
  for (const [what, act] of early) {
    test(`ends the connection before the proof: ${what}`, async () => {
      await using gateway = startGateway();
      const node = await rawNode(gateway);
      act(node);
      expect((await node.end()).code).toBe(tunnelCloseCodes.protocol);
    });
  }

  test("ends the connection at a message of more than 8 KB before the proof, with 1009", async () => {
    await using gateway = startGateway();
    const node = await rawNode(gateway);
    node.send(messageTypes.proof, 0, Buffer.alloc(9_000));
    expect((await node.end()).code).toBe(1009);
  });

  test("ends the connection at a second proof during the lookup of the first, and ignores its result", async () => {
    const found = Promise.withResolvers<{ publicKey: string }>();
    await using gateway = startGateway({ findKey: () => found.promise });
    const key = newNodeKey();
    const node = await rawNode(gateway);
    const proof = await proofOf(node, "node_a", key.privateKey);
    node.send(messageTypes.proof, 0, proof);
    node.send(messageTypes.proof, 0, proof);
    expect((await node.end()).code).toBe(tunnelCloseCodes.protocol);
    found.resolve({ publicKey: key.publicKey });
    await Bun.sleep(5);
    expect(gateway.ends).toEqual([]);
  });

  test("ends a silent connection before the proof at a deadline", async () => {
    await using gateway = startGateway({ limits: { authenticationMs: 60, heartbeatMs: 50 } });
    const node = await rawNode(gateway);
    expect((await node.end()).code).toBe(tunnelCloseCodes.authenticationTimeout);
  });

  test("reads no further than the first message of a flood before the proof", async () => {
    let lookups = 0;
    await using gateway = startGateway({
      findKey: async () => {
        lookups++;
        return { refused: "unknown" };
      },
    });
    const node = await rawNode(gateway);
    const proof = await proofOf(node, "node_a", newNodeKey().privateKey);
    for (let index = 0; index < 20_000; index++) node.link.send(messageOf(messageTypes.proof, 0, proof));
    await node.end();
    expect(lookups).toBe(1);
  });

  test("bounds the connections that wait for their proof, and frees their places", async () => {
    await using gateway = startGateway();
    const waiting = await Promise.all(Array.from({ length: 256 }, () => rawNode(gateway)));
    expect(rawNode(gateway)).rejects.toThrow("answered 400");
    waiting[0]?.link.terminate();
    await until(() => gateway.warnings.length === 1, "its end");
    const node = await rawNode(gateway);
    await node.received(messageTypes.hello);
    for (const each of waiting) each.link.terminate();
  });

  test("leaves room for other addresses when one address takes all places", async () => {
    await using gateway = startGateway();
    const hogs = await Promise.all(Array.from({ length: 254 }, () => rawNode(gateway, "203.0.113.1")));
    const other = await rawNode(gateway, "203.0.113.2");
    const another = await rawNode(gateway, "2001:db8::1");
    const third = await rawNode(gateway, "2001:db8::2");
    await third.received(messageTypes.hello);
    expect((await hogs[0]?.end())?.code).toBe(tunnelCloseCodes.busy);
    expect(rawNode(gateway, "203.0.113.1")).rejects.toThrow("answered 400");
    expect([other, another, hogs[1]].map((end) => end?.listener.end)).toEqual([undefined, undefined, undefined]);
    for (const each of [...hogs, other, another, third]) each.link.terminate();
  });

  test("refuses another connection while each place has an address of its own", async () => {
    await using gateway = startGateway();
    const addresses = Array.from({ length: 256 }, (_, i) => `2001:db8:${i.toString(16)}::1`);
    const waiting = await Promise.all(addresses.map((address) => rawNode(gateway, address)));
    await expect(rawNode(gateway, "203.0.113.1")).rejects.toThrow("answered 400");
    expect(waiting.filter(({ listener }) => listener.end !== undefined)).toEqual([]);
    for (const each of waiting) each.link.terminate();
  });

  test("ends only waiting connections when the acceptor closes", async () => {
    await using gateway = startGateway();
    const proven = await welcomedNode(gateway);
    const waiting = await rawNode(gateway);
    await waiting.received(messageTypes.hello);
    gateway.acceptor.close();
    expect((await waiting.end()).code).toBe(tunnelCloseCodes.goingAway);
    expect(rawNode(gateway)).rejects.toThrow("answered 400");
    expect(proven.listener.end).toBeUndefined();
  });
});

test("refuses a foreign page, and tells a request without an upgrade what is needed", async () => {
  await using gateway = startGateway();
  const headers = {
    ...{ connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
    ...{ "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-protocol": tunnelProtocol },
  };
  const url = gateway.url + nodeConnectPath;
  const page = await fetch(url, { headers: { ...headers, origin: "https://evil.example" } });
  expect(await page.text()).toContain("pages do not");
  const plain = await fetch(url);
  expect(await plain.text()).toContain("Upgrade: websocket");
  expect(plain.headers.get("sec-websocket-version")).toBe("13");
});

test("proves a node's identity only to its own gateway", async () => {
  await using gateway = startGateway({ gatewayUrl: () => "https://evil.example" });
  using node = startNode(gateway);
  await until(() => node.link.state.status === "refused", "the refusal");
  expect(node.link.state.message).toContain("is not the one that it joined");
  expect(gateway.ends).toEqual([]);
  await until(() => gateway.warnings.length === 1, "the line in the log");
  expect(gateway.warnings[0]?.["detail"]).toContain("not the gateway");
});

test("accepts a proof for one text only, in one spelling", () => {
  const key = newNodeKey();
  const text = { protocol: tunnelProtocol, gateway: gatewayUrl, nodeId: "n", nonce: "x" };
  const signature = signProof(key.privateKey, text);
  expect(verifyProof(key.publicKey, text, signature)).toBe(true);
  for (const name of ["protocol", "gateway", "nodeId", "nonce"] as const) {
    expect(verifyProof(key.publicKey, { ...text, [name]: `${text[name]} ` }, signature)).toBe(false);
  }
  // A part of one member cannot be moved into the next member.
  expect(verifyProof(key.publicKey, { ...text, nodeId: 'n","x', nonce: "" }, signature)).toBe(false);
  for (const other of [`${signature}=`, `${signature} `, signature.slice(1), "", "AAAA"]) {
    expect(verifyProof(key.publicKey, text, other)).toBe(false);
  }
  expect(verifyProof("AAAA", text, signature)).toBe(false);
  expect(verifyProof(newNodeKey().publicKey, text, signature)).toBe(false);
  expect(() => signProof("AAAA", text)).toThrow();
});
