// A process of a node as the gateway reads it: no bytes stay buffered after its reader has closed.
import { expect, test } from "bun:test";
import type { BodySink } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { sessionField } from "../../domain/tools/node-tools.ts";
import { NodeProcessTransport } from "./node-process-transport.ts";

const before = bufferedBytes.byKind.answers;

/** Returns a started transport, and the sink into which its node writes. */
async function startLine() {
  const said = Promise.withResolvers<BodySink>();
  const body = { flow: said.resolve, pause() {}, resume() {}, cancel() {} };
  const send = async () => ({ status: 200, headers: new Headers({ [sessionField]: "process_1" }), body });
  const line = new NodeProcessTransport({
    name: "own",
    at: { nodes: { send }, nodeId: "node_1", server: "own" },
    maxLineBytes: 100_000,
  });
  await line.start();
  const sink = await said.promise;
  return { line, say: (text: string) => sink.data(ByteSpan.of(Buffer.from(text))), sink };
}

test("holds an incomplete line until the connection closes", async () => {
  const { line, say } = await startLine();
  say(`{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"`);
  say("x".repeat(10_000));
  expect(bufferedBytes.byKind.answers - before).toBeGreaterThan(10_000);
  await line.close();
  expect(bufferedBytes.byKind.answers).toBe(before);
});

test("drops output behind a message whose receiver closed the connection", async () => {
  const { line, say } = await startLine();
  line.onmessage = () => void line.close();
  say(`{"jsonrpc":"2.0","method":"notifications/x"}\n{"jsonrpc":`);
  expect(bufferedBytes.byKind.answers).toBe(before);
});

test("releases an incomplete line when its exchange ends in any way", async () => {
  for (const end of [(sink: BodySink) => sink.end(), (sink: BodySink) => sink.fail(new Error("lost"))]) {
    const { line, say, sink } = await startLine();
    say(`{"jsonrpc":`);
    end(sink);
    expect(bufferedBytes.byKind.answers).toBe(before);
    expect(line.fault()?.message).toStartWith('The process of the MCP server "own" at its node');
  }
});
