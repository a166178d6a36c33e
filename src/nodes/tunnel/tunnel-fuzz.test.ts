// Tests random messages, most of them nearly valid: neither end crashes, hangs or leaves anything open.
import { expect, test } from "bun:test";
import { seeded } from "../../../tests/support/seeded.ts";
import {
  json,
  messageOf,
  rawGateway,
  requestMessage,
  welcomedNode,
  welcoming,
} from "../../../tests/support/tunnel/raw-ends.ts";
import { requestOf, startGateway, startNode, textOf, until } from "../../../tests/support/tunnel/tunnel-fixture.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { creditPayload, messageTypes } from "./messages.ts";

const ok = json({ status: 200, headers: {} });

test("survives random messages at either end with nothing left open", async () => {
  const next = seeded(41);
  const below = (limit: number) => Math.floor(next() * limit);
  const types = [...Object.values(messageTypes), 0x00, 0x33, 0xff];
  const some = (valid: readonly Buffer[]) => {
    const payload = Buffer.from(valid[below(valid.length)] as Buffer);
    if (payload.length > 0 && below(3) === 0) payload[below(payload.length)] = below(256);
    return below(8) === 0 ? payload.subarray(0, below(payload.length + 1)) : payload;
  };
  const payloads = [
    ...[ok, creditPayload(1_000), creditPayload(0xffff_ffff), Buffer.alloc(0), Buffer.from("text")],
    ...[json({ code: "upstream_error", message: "x" }), json({ version: "1", models: [{ id: "m" }] })],
    ...[requestMessage({}, "abc"), requestMessage({ length: 100 }, "abc"), Buffer.alloc(3_000)],
  ];
  await using gateway = startGateway({ limits: { heartbeatMs: 100 } });
  await using hostile = rawGateway(welcoming);
  using node = startNode(
    { url: hostile.url, keys: new Map() },
    {
      handle: async () => ({ status: 200, headers: new Headers(), body: bodyOf(Buffer.alloc(5_000)) }),
      timings: { firstBackoffMs: 1, backoffMs: 1 },
    },
  );
  for (let run = 0; run < 40; run++) {
    const raw = await welcomedNode(gateway);
    const heard = gateway.ends.at(-1);
    const answers = Array.from({ length: 5 }, async () => {
      const response = await heard?.end.send(requestOf("x".repeat(below(5_000))), new Cancellation());
      return response && textOf(response);
    });
    const settled = Promise.allSettled(answers);
    for (let count = 0; count < 60; count++)
      raw.link.send(messageOf(types[below(types.length)] as number, below(7), some(payloads)));
    if (below(2) === 0) raw.link.close(1000, "");
    else raw.link.terminate();
    await settled;
    await until(() => heard?.closed, "the end");
    expect(heard?.end.openStreams).toBe(0);
    await until(
      () => node.link.state.status === "connected" && hostile.ends.at(-1)?.listener.end === undefined,
      "the node",
    );
    const it = hostile.ends.at(-1);
    for (let count = 0; count < 60; count++) it?.send(types[below(types.length)] as number, below(7), some(payloads));
    it?.link.terminate();
    await until(() => it?.listener.end, "the end of the other");
    await until(() => node.link.openStreams === 0, "the streams of the node");
  }
  expect(gateway.http.faults).toEqual([]);
});
