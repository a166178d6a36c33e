// Tests an answer that another replica passes on and that breaks off: the first replica learns whose fault it is.
import { expect, test } from "bun:test";
import { startTestServer } from "../../tests/support/http1/server-fixture.ts";
import { RecordingSink, requestOf, until } from "../../tests/support/tunnel/tunnel-fixture.ts";
import { NoRoomError } from "../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../base/cancellation.ts";
import { systemClock } from "../base/clock.ts";
import { BlamelessError, GatewayError } from "../base/errors.ts";
import type { EngineResponse } from "../domain/models/engine.ts";
import type { NodeConnection } from "../domain/models/node.ts";
import { faultTrailer, forwardHeaders } from "./forward-wire.ts";
import { ReplicaForwarder } from "./replica-forwarder.ts";

/** Returns the error that a reader of the answer gets if the other replica breaks it off with this trailer. */
async function heardOf(trailer: string | undefined): Promise<unknown> {
  await using other = startTestServer((_request, reply) => {
    const stream = reply.stream(200, { [forwardHeaders.outcome]: "answer" });
    stream.write("data: 1\n\n");
    setTimeout(() => stream.abort(trailer), 10);
  });
  const forwarder = new ReplicaForwarder({
    key: [Buffer.alloc(32)],
    clock: systemClock,
    firstByteTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
  });
  const connection = { nodeId: "n", replicaId: "r", advertiseUrl: other.url } as NodeConnection;
  const { body } = (await forwarder.send(connection, requestOf("{}"), new Cancellation())) as EngineResponse;
  const sink = new RecordingSink();
  body.flow(sink);
  await until(() => sink.ended || sink.error, "the end of the answer");
  expect(sink.bytes).toBe(9);
  forwarder.close();
  return sink.error;
}

test("reports what broke an answer off, and whether room was missing", async () => {
  const fault = new GatewayError("upstream_timeout", "Too slow.", { detail: "node_1: model-7" });
  const reported = await heardOf(faultTrailer(fault));
  expect(reported).not.toBeInstanceOf(BlamelessError);
  expect(reported).toMatchObject({ code: "upstream_timeout", message: "Too slow.", detail: "node_1: model-7" });
  const full = await heardOf(faultTrailer(new NoRoomError("service_unavailable", "Full.", { retryAfterSeconds: 2 })));
  expect(full).toBeInstanceOf(NoRoomError);
  expect(full).toMatchObject({ code: "service_unavailable", message: "Full.", retryAfterSeconds: 2 });
});

test("blames no deployment if another replica breaks off without a reason", async () => {
  for (const trailer of [undefined, `${forwardHeaders.fault}: no-fault`]) {
    const error = await heardOf(trailer);
    expect(error).toBeInstanceOf(BlamelessError);
    expect(error).toMatchObject({ code: "upstream_error" });
  }
});
