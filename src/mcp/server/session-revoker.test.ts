// Sessions and streams end when their principal loses its rights.
import { afterEach, expect, test } from "bun:test";
import { callerOf } from "../../../tests/support/link-world.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { invalidApiKey } from "../../base/invalid-api-key.ts";
import type { Principal } from "../../domain/principal.ts";
import { SessionRevoker } from "./session-revoker.ts";

const caller: Principal = { ...callerOf("key_1"), scopes: new Set(["tools:use"]) };
let revoker: SessionRevoker;

afterEach(() => revoker.close());

/** Reports whether an entry of `caller` has ended, if its credential now has these rights. */
async function hasEnded(now: Principal | GatewayError): Promise<boolean> {
  let isOver = false;
  const still = async (asked: Principal) => {
    expect(asked).toBe(caller);
    if (now instanceof GatewayError) throw now;
    return now;
  };
  revoker = new SessionRevoker({ clock: manualClock(), still });
  revoker.add(caller, undefined, () => {
    isOver = true;
  });
  await revoker.check();
  return isOver;
}

// long-lived: mcpSession.credential, mcpStream.credential
test.each<[string, Principal | GatewayError]>([
  ["is revoked", invalidApiKey("revoked")],
  ["has lost the scope", { ...caller, scopes: new Set(["chat:write"]) }],
  ["may use other tools", { ...caller, tools: { lists: [["crm"]] } }],
  ["becomes local-only", { ...caller, modelAccess: { models: [], neverLeaves: true } }],
])("ends a session when its key %s", async (_, now) => {
  expect(await hasEnded(now)).toBe(true);
});

test.each<[string, Principal | GatewayError]>([
  ["has the same rights", { ...caller, scopes: new Set(["tools:use", "chat:write"]) }],
  ["may use other models", { ...caller, modelAccess: { models: [["m"]], neverLeaves: false } }],
  ["cannot be looked up at the moment", new GatewayError("service_unavailable", "The store is away.")],
])("keeps a session while its key %s", async (_, now) => {
  expect(await hasEnded(now)).toBe(false);
});
