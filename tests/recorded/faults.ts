// Faults of model servers, by the name of the upstream's model: statuses, malformed answers, streams that break off.
import type { ServerResponse } from "node:http";

type Fault = (res: ServerResponse, stream: string, whole: string) => void;

const refusal =
  (
    status: number,
    headers: Record<string, string> = {},
    body: unknown = { error: { message: `says ${status}` } },
  ): Fault =>
  (res) => {
    res.writeHead(status, { "content-type": "application/json", ...headers });
    res.end(typeof body === "string" ? body : JSON.stringify(body));
  };

/** Streams the events that `change` returns, and then ends the answer or breaks the connection. */
const streamed =
  (change: (events: string[]) => string[], end: "end" | "destroy" = "end"): Fault =>
  (res, stream) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    const text = change(stream.split(/(?<=\n\n)/)).join("");
    if (end === "end") res.end(text);
    // The delay lets the written events leave before the connection breaks.
    else res.write(text, () => setTimeout(() => res.destroy(), 5));
  };

const broken = { error: { message: "out of memory", type: "server_error" } };
const namedError = `event: error\ndata: ${JSON.stringify({ type: "error", message: "out of memory", ...broken })}\n\n`;

/** Faults that answer with a status or a whole answer, also to a request for a stream. */
export const statusFaults: Readonly<Record<string, Fault>> = {
  "status-400": refusal(400, {}, { error: { message: "no such member", type: "invalid_request_error", param: "x" } }),
  "status-401": refusal(401),
  "status-403": refusal(403),
  "status-404": refusal(404, {}, { error: { message: "The model does not exist", code: "model_not_found" } }),
  "status-413": refusal(413),
  "status-422": refusal(422, {}, { detail: [{ loc: ["body", "x"], msg: "field required", type: "missing" }] }),
  "status-429": refusal(429, { "retry-after": "7" }),
  "status-500": refusal(500),
  "status-502": refusal(502, { "content-type": "text/html" }, "<html>Bad gateway</html>"),
  "status-503": refusal(503, { "retry-after": "7" }),
  "status-504": refusal(504),
  "status-529": refusal(529, {}, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
  redirected: refusal(302, { location: "http://127.0.0.1:1/" }),
  empty: refusal(200, {}, ""),
  "no-json": refusal(200, {}, "{"),
  list: refusal(200, {}, []),
  "no-members": refusal(200, {}, {}),
  "error-as-200": refusal(200, {}, broken),
  closed: (res) => res.destroy(),
  "half-answer": (res, _stream, whole) => {
    res.writeHead(200, { "content-type": "application/json", "content-length": String(whole.length + 99) });
    res.write(whole.slice(0, 40), () => setTimeout(() => res.destroy(), 5));
  },
};

/** Faults within a stream. */
export const streamFaults: Readonly<Record<string, Fault>> = {
  "cut-early": streamed((events) => events.slice(0, 1)),
  "cut-late": streamed((events) => events.slice(0, -2)),
  "cut-in-event": streamed((events) => [...events.slice(0, 3), (events[3] ?? "").slice(0, 20)]),
  broken: streamed((events) => events.slice(0, 4), "destroy"),
  "error-event": streamed((events) => [...events.slice(0, 4), namedError]),
  "error-first": streamed(() => [namedError]),
  malformed: streamed((events) => [...events.slice(0, 4), 'data: {"id":\n\n', ...events.slice(4)]),
  "no-object": streamed((events) => [...events.slice(0, 2), "data: 7\n\n", ...events.slice(2)]),
  silent: streamed(() => []),
  "whole-for-stream": (res, _stream, whole) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(whole);
  },
};

export const faults: Readonly<Record<string, Fault>> = { ...statusFaults, ...streamFaults };
