// Tests long-lived connections: the limits of every kind, and each reason that ends a connection.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../tests/support/principal.ts";
import { GatewayError } from "../base/errors.ts";
import { longConnectionKinds, longLived } from "../base/long-lived.ts";
import type { Principal } from "../domain/principal.ts";
import { type ConnectionWatch, type LongConnectionEnd, LongConnections } from "./long-connections.ts";

const limit = 64;

function world() {
  const clock = { ms: 0, seconds: 0, monotonicMs: () => clock.ms, nowSeconds: () => clock.seconds };
  return { clock, connections: new LongConnections({ clock, connectionLimit: () => limit, pollMs: 2 }) };
}

function owner(account: string, key: string): Principal {
  const principal = principalFor();
  const [first] = principal.keys;
  return { ...principal, account: { ...principal.account, id: account }, keys: [{ ...first, id: key, limitId: key }] };
}

function codeOf(act: () => unknown): string {
  try {
    act();
    return "opened";
  } catch (error) {
    return (error as GatewayError).code;
  }
}

/** Opens a connection and resolves with the reason of its end. */
function ends(connections: LongConnections, watch: Partial<ConnectionWatch>, kind = longConnectionKinds[0]) {
  return new Promise<LongConnectionEnd>((resolve) => {
    connections.open({
      kind: kind as (typeof longConnectionKinds)[number],
      principal: owner("a", "k"),
      watch: { holds: () => {}, end: resolve, ...watch },
    });
  });
}

describe.each(longConnectionKinds)("a long-lived connection of kind %s", (kind) => {
  // long-lived: responseSocket.key, realtimeSession.key, responseFollower.key
  test("refuses a connection once its key holds an eighth of all, until one is released", () => {
    const { connections } = world();
    const open = (account = "a", key = "k1") => connections.open({ kind, principal: owner(account, key) });
    const first = open();
    for (let i = 1; i < limit / 8; i++) open();
    expect(codeOf(open)).toBe("rate_limit_exceeded");
    expect(codeOf(() => open("a", "k2"))).toBe("opened");
    first.release();
    first.release();
    expect(codeOf(open)).toBe("opened");
    expect(codeOf(open)).toBe("rate_limit_exceeded");
  });

  // long-lived: responseSocket.account, realtimeSession.account, responseFollower.account
  test("refuses a connection once its account holds a quarter of all, across its keys", () => {
    const { connections } = world();
    for (let i = 0; i < limit / 4; i++) connections.open({ kind, principal: owner("a", `k${i}`) });
    expect(codeOf(() => connections.open({ kind, principal: owner("a", "another") }))).toBe("rate_limit_exceeded");
    expect(codeOf(() => connections.open({ kind, principal: owner("b", "another") }))).toBe("opened");
  });

  // long-lived: responseSocket.total, realtimeSession.total, responseFollower.total
  test("refuses a connection once all accounts hold half of all", () => {
    const { connections } = world();
    for (let i = 0; i < limit / 2; i++) connections.open({ kind, principal: owner(`a${i}`, `k${i}`) });
    expect(codeOf(() => connections.open({ kind, principal: owner("b", "k") }))).toBe("service_unavailable");
  });

  // long-lived: responseSocket.credential, realtimeSession.credential, responseFollower.credential
  test("ends a connection with its credential, but not when the store is unavailable", async () => {
    const { connections } = world();
    let thrown: unknown = new GatewayError("service_unavailable", "The database is away.");
    const ended = ends(
      connections,
      {
        holds: () => {
          throw thrown;
        },
      },
      kind,
    );
    await Bun.sleep(20);
    expect(connections.size).toBe(1);
    thrown = new GatewayError("invalid_api_key", "Invalid API key provided.");
    expect(await ended).toBe("credential");
    expect(connections.size).toBe(0);
  });

  test("ends a connection when its token expires, though the key remains", async () => {
    const { clock, connections } = world();
    const principal = { ...owner("a", "k"), tokenExpiresAt: 60 };
    const ended = new Promise<GatewayError>((resolve) => {
      connections.open({ kind, principal, watch: { holds: () => {}, end: (_, error) => resolve(error) } });
    });
    clock.seconds = 59;
    await Bun.sleep(20);
    expect(connections.size).toBe(1);
    clock.seconds = 60;
    expect((await ended).code).toBe("token_expired");
  });

  test("lets a running answer finish when the token expires, but not when the key is revoked", async () => {
    const { clock, connections } = world();
    const principal = { ...owner("a", "k"), tokenExpiresAt: 60 };
    clock.seconds = 60;
    let isBusy = true;
    const ended = new Promise<string>((resolve) => {
      const watch = {
        holds: () => {},
        isBusy: () => isBusy,
        end: (_: unknown, { code }: GatewayError) => resolve(code),
      };
      connections.open({ kind, principal, watch });
    });
    await Bun.sleep(20);
    expect(connections.size).toBe(1);
    isBusy = false;
    expect(await ended).toBe("token_expired");
    const holds = (code: "token_expired" | "invalid_api_key") => () => {
      throw new GatewayError(code, "It has ended.");
    };
    const opened = connections.open({
      ...{ kind, principal: owner("a", "k") },
      watch: { holds: holds("token_expired"), isBusy: () => true, end: () => {} },
    });
    await Bun.sleep(20);
    expect(connections.size).toBe(1);
    opened.release();
    expect(await ends(connections, { holds: holds("invalid_api_key"), isBusy: () => true }, kind)).toBe("credential");
  });

  // long-lived: responseSocket.idle, realtimeSession.idle, responseSocket.age, realtimeSession.age
  test("ends a connection at its idle limit and at its maximum age", async () => {
    const { idleMs, maxMs } = longLived[kind];
    if (idleMs !== undefined) {
      const { clock, connections } = world();
      const ended = ends(connections, {}, kind);
      clock.ms = idleMs;
      expect(await ended).toBe("idle");
    }
    if (maxMs !== undefined) {
      const { clock, connections } = world();
      const ended = ends(connections, { isBusy: () => true }, kind);
      clock.ms = maxMs - 1;
      await Bun.sleep(20);
      expect(connections.size).toBe(1);
      clock.ms = maxMs;
      expect(await ended).toBe("age");
    }
  });
});

test("does not count a used or busy connection as idle", async () => {
  const { clock, connections } = world();
  let isBusy = true;
  let ended = false;
  const opened = connections.open({
    kind: "responseSocket",
    principal: owner("a", "k"),
    watch: {
      holds: () => {},
      isBusy: () => isBusy,
      end: () => {
        ended = true;
      },
    },
  });
  const { idleMs } = longLived.responseSocket;
  clock.ms = idleMs;
  await Bun.sleep(20);
  expect(ended).toBe(false);
  isBusy = false;
  clock.ms += idleMs - 1;
  opened.touch();
  clock.ms += 1;
  await Bun.sleep(20);
  expect(ended).toBe(false);
  clock.ms += idleMs;
  await Bun.sleep(20);
  expect(ended).toBe(true);
});
