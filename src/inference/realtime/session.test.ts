// Tests the limits of a realtime session: age, silence, events before the client connects, and account data that no
// client may see.
import { expect, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { AccountMemory, bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { MessageLinkListener, PausableLink } from "../../base/bytes/message-link.ts";
import { systemClock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Model } from "../../domain/models/model.ts";
import { Stopping } from "../stopping.ts";
import { type RealtimeOptions, RealtimeSession } from "./session.ts";

type Json = Record<string, unknown>;

/** These sessions must not request a response. */
function never(): never {
  throw new Error("Nobody is to be asked.");
}

/** One end of a connection, as the session sees it. */
class End implements PausableLink {
  readonly peer = "test";
  readonly unsentBytes = 0;
  readonly sent: Json[] = [];
  closedWith: number | undefined;

  send(message: Uint8Array): void {
    this.sent.push(JSON.parse(Buffer.from(message).toString()) as Json);
  }

  close(code: number): void {
    this.closedWith ??= code;
  }

  terminate(): void {
    this.closedWith ??= 1006;
  }

  pause(): void {}
  resume(): void {}
}

const say = (listener: MessageLinkListener, event: Json) => listener.message(Buffer.from(JSON.stringify(event)));

function talking(times: RealtimeOptions["times"], principal: RealtimeOptions["principal"] = () => principalFor()) {
  const engine = { name: "up", send: never, models: never, redact: (text: string) => text };
  const deployment = { engine, model: "own-name", weight: 1 };
  const model: Model = {
    ...{ id: "talker", created: 0, ownedBy: "up", capabilities: undefined, context: undefined, price: undefined },
    ...{ environments: [], deployments: [deployment] },
  };
  const session = new RealtimeSession({
    deps: {
      ...{ stopping: new Stopping(), clock: systemClock, catalog: { find: never, get: never, whenComplete: never } },
      ...{ admitter: { admit: never }, ledger: { begin: never } },
      ...{ refusalCounts: { count: never }, requestTags: { of: never } },
    },
    models: { name: "talker", model, deployment },
    ...{ principal, holds: principal },
    line: never,
    refused: never,
    over() {},
    tagHeader: null,
    memoryAccount: bufferedBytes.memoryAccount(new AccountMemory()),
    errorOf: ({ code, message }) => ({ code, message }),
    toGatewayError: (thrown) => thrown as GatewayError,
    times: { idleMs: 60_000, maxMs: 60_000, credentialMs: 60_000, ...times },
  });
  const [client, server] = [new End(), new End()];
  const atServer = session.listenToServer(server);
  return { session, client, server, atServer, begin: () => session.listenToClient(client) };
}

async function ended(client: End): Promise<void> {
  const since = performance.now();
  while (client.closedWith === undefined && performance.now() - since < 5_000) await Bun.sleep(2);
}

// long-lived: realtimeSession.age
test("ends a session at its maximum age with an event, and the upstream's session too", async () => {
  const { client, server, begin } = talking({ maxMs: 20 });
  begin();
  await ended(client);
  expect(client.sent).toMatchObject([{ type: "error", error: { code: "session_expired" } }]);
  expect(client.sent[0]).not.toHaveProperty("error.param");
  expect([client.closedWith, server.closedWith]).toEqual([1000, 1000]);
});

// long-lived: realtimeSession.idle
test("ends an idle session and keeps an active one", async () => {
  const { client, begin } = talking({ idleMs: 150 });
  const atClient = begin();
  for (let i = 0; i < 30; i++) {
    say(atClient, { type: "input_audio_buffer.append", audio: "" });
    await Bun.sleep(10);
  }
  expect(client.closedWith).toBeUndefined();
  await ended(client);
  expect(client.sent.at(-1)).toMatchObject({ type: "error", error: { code: "session_expired" } });
});

test("ends a session when its credential ends, but not when the store is unavailable", async () => {
  let thrown = new GatewayError("service_unavailable", "The database is away.");
  const { client, begin } = talking({ credentialMs: 5 }, () => {
    throw thrown;
  });
  begin();
  await Bun.sleep(40);
  expect(client.closedWith).toBeUndefined();
  thrown = new GatewayError("invalid_api_key", "Invalid API key provided.");
  await ended(client);
  expect([client.sent.at(-1)?.["error"], client.closedWith]).toEqual([
    { code: "invalid_api_key", message: "Invalid API key provided.", event_id: null },
    1008,
  ]);
});

test("holds the upstream's first events for the client and removes the upstream's secret", async () => {
  const { client, atServer, begin } = talking({});
  const session = { id: "sess_1", model: "own-name", client_secret: { value: "ek_secret", expires_at: 1 } };
  say(atServer, { type: "session.created", session });
  say(atServer, { type: "rate_limits.updated", rate_limits: [{ name: "tokens", remaining: 5 }] });
  say(atServer, { type: "input_audio_buffer.speech_started" });
  begin();
  await Bun.sleep(1);
  expect(client.sent).toEqual([
    { type: "session.created", session: { id: "sess_1", model: "talker" } },
    { type: "input_audio_buffer.speech_started" },
  ]);
});

test("reports an upstream that closes before the client is ready as an upstream fault", async () => {
  const { client, atServer, begin } = talking({});
  atServer.closed(1006, "");
  begin();
  await ended(client);
  expect([client.sent.at(-1)?.["error"], client.closedWith]).toMatchObject([{ code: "upstream_error" }, 1011]);
});

test("ends the session as an upstream fault if the upstream sends an invalid event", async () => {
  const { client, atServer, begin } = talking({});
  begin();
  await Bun.sleep(1);
  atServer.message(Buffer.from("<html>"));
  expect([client.sent.at(-1)?.["error"], client.closedWith]).toMatchObject([{ code: "upstream_error" }, 1011]);
});
