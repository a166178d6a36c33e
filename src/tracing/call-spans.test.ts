// The span of a call of a tool: below its request, with what was called and how it ended, and nothing of what was said.
import { expect, test } from "bun:test";
import { ROOT_CONTEXT, SpanStatusCode } from "@opentelemetry/api";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { SpanTrace } from "./request-trace.ts";

test("records a tool call as a span below its request, with its name and outcome", () => {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const trace = new SpanTrace({
    tracer: provider.getTracer("test"),
    exchange: {
      ...{ requestId: "req_1", method: "POST", route: "/mcp", keyId: "key_1", actorId: "key_1", ageMs: 0 },
      headers: { get: () => null },
    },
    parent: ROOT_CONTEXT,
    tracestate: undefined,
    content: false,
  });
  trace.calls({ server: "github", method: "tools/call", name: "search" })(null);
  trace.calls({ server: "files", method: "resources/read", name: null })("upstream_error");
  trace.end(200, undefined);
  trace.calls({ server: "github", method: "tools/call", name: "late" })(null);
  const spans = exporter.getFinishedSpans();
  const root = spans.at(-1);
  expect(spans.map(({ name }) => name)).toEqual(["tools/call search", "resources/read", "POST /mcp"]);
  const [first, second] = spans;
  expect(first?.parentSpanContext?.spanId).toBe(root?.spanContext().spanId ?? "");
  expect(first?.attributes).toEqual({
    "mcp.method.name": "tools/call",
    "headrace.tool_server": "github",
    "gen_ai.tool.name": "search",
  });
  expect(first?.status.code).toBe(SpanStatusCode.UNSET);
  expect(second?.attributes["error.type"]).toBe("upstream_error");
  expect(second?.status.code).toBe(SpanStatusCode.ERROR);
});
