// An OTLP/HTTP receiver for traces: keeps the spans that it is sent, with their attributes as plain values.
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  /** 1 internal, 2 server, 3 client. */
  kind: number;
  /** Unix nanoseconds. */
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  events: { name: string; ns: bigint }[];
  /** 0 unset, 2 error. */
  status: number;
  tracestate: string;
}

export interface Collector {
  /** Ends without `/v1/traces`. */
  url: string;
  spans: ReceivedSpan[];
  /** Whatever came, as it came. */
  text(): string;
  requests: { path: string; headers: Headers }[];
  resource: Record<string, unknown>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `answer`: what it does instead of taking what comes. */
export function startCollector(answer?: (request: Request) => Response | Promise<Response>): Collector {
  const spans: ReceivedSpan[] = [];
  const requests: Collector["requests"] = [];
  const resource: Record<string, unknown> = {};
  let text = "";
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch(request) {
      requests.push({ path: new URL(request.url).pathname, headers: request.headers });
      if (answer) return await answer(request);
      const body = await request.text();
      text += body;
      for (const of of (JSON.parse(body) as Export).resourceSpans) {
        Object.assign(resource, attributesOf(of.resource.attributes));
        for (const scope of of.scopeSpans) spans.push(...scope.spans.map(received));
      }
      return Response.json({});
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    text: () => text,
    requests,
    resource,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}

type Value = {
  stringValue?: string;
  intValue?: number | string;
  doubleValue?: number;
  boolValue?: boolean;
  arrayValue?: { values: Value[] };
};
type Attributes = { key: string; value: Value }[];

interface WireSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  traceState?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attributes;
  events: { name: string; timeUnixNano: string }[];
  status: { code?: number };
}

interface Export {
  resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { spans: WireSpan[] }[] }[];
}

function received(span: WireSpan): ReceivedSpan {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? "",
    name: span.name,
    kind: span.kind,
    startNs: BigInt(span.startTimeUnixNano),
    endNs: BigInt(span.endTimeUnixNano),
    attributes: attributesOf(span.attributes),
    events: span.events.map(({ name, timeUnixNano }) => ({ name, ns: BigInt(timeUnixNano) })),
    status: span.status.code ?? 0,
    tracestate: span.traceState ?? "",
  };
}

function attributesOf(list: Attributes): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, plainValue(value)]));
}

function plainValue({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): unknown {
  if (arrayValue) return arrayValue.values.map(plainValue);
  return stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue;
}
