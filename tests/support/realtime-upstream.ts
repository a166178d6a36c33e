// A model server with OpenAI's realtime API: it answers in text and audio as it is told to, and counts what it told.
import type { ServerWebSocket } from "bun";

type Json = Record<string, unknown>;

export interface RealtimeConnection {
  /** With the query. */
  path: string;
  headers: Headers;
  /** Events that came, in their order. */
  events: Json[];
  /** The close code, once it is closed. */
  closed: number | undefined;
  /** Bytes that were sent and have not left this process. */
  readonly unsentBytes: number;
  send(event: Json): void;
  close(code: number): void;
}

/** Usage by its own account. */
export interface ReportedUsage {
  inputTokens: number;
  outputTokens: number;
}

export interface RealtimeUpstream {
  /** Base URL, ends in `/v1`. */
  url: string;
  connections: RealtimeConnection[];
  /** What each response and each transcript used, in the order in which it was told. */
  received: ReportedUsage[];
  /** Responses that began. */
  begun: number;
  /** Events of text of each response; `endless`: until it is cancelled. */
  speaks(pieces: number | "endless"): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Details as OpenAI tells them. */
const inputDetails = {
  ...{ text_tokens: 20, audio_tokens: 80, cached_tokens: 30 },
  cached_tokens_details: { text_tokens: 10, audio_tokens: 20 },
};
const audio = Buffer.alloc(4_800).toString("base64");

interface Spoken {
  number: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  pieces: number;
}

interface Data {
  connection: RealtimeConnection;
  session: Json;
  open: Map<string, Spoken>;
}

/** `audio` of `input_audio_buffer.append` by which its own turn begins. */
export const turn = Buffer.from("turn").toString("base64");

export function startRealtimeUpstream(models: readonly string[] = ["rt-own-name"]): RealtimeUpstream {
  const connections: RealtimeConnection[] = [];
  const received: ReportedUsage[] = [];
  let pieces: number | "endless" = 3;
  let [count, lost] = [0, 0];

  const tell = (socket: ServerWebSocket<Data>, event: Json) =>
    socket.send(JSON.stringify({ event_id: `event_${++count}`, ...event }));

  const done = (socket: ServerWebSocket<Data>, id: string, status: string) => {
    const spoken = socket.data.open.get(id);
    if (!spoken) return;
    clearTimeout(spoken.timer);
    socket.data.open.delete(id);
    const usage = { inputTokens: 100, outputTokens: 10 + spoken.pieces };
    received.push(usage);
    tell(socket, {
      type: "response.done",
      response: {
        ...{ id, object: "realtime.response", status, output: [] },
        usage: {
          total_tokens: usage.inputTokens + usage.outputTokens,
          ...{ input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
          input_token_details: inputDetails,
          output_token_details: { text_tokens: usage.outputTokens - 4, audio_tokens: 4 },
        },
      },
    });
  };

  const speak = (socket: ServerWebSocket<Data>) => {
    const number = ++upstream.begun;
    const id = `resp_${number}`;
    const spoken: Spoken = { number, timer: undefined, pieces: 0 };
    socket.data.open.set(id, spoken);
    tell(socket, { type: "response.created", response: { id, object: "realtime.response", status: "in_progress" } });
    tell(socket, { type: "response.output_audio.delta", response_id: id, delta: audio });
    const next = () => {
      if (pieces !== "endless" && spoken.pieces >= pieces) {
        done(socket, id, "completed");
        return;
      }
      spoken.pieces++;
      tell(socket, { type: "response.output_text.delta", response_id: id, delta: `word ${spoken.pieces} ` });
      spoken.timer = setTimeout(next, 2);
    };
    next();
  };

  const heard = (socket: ServerWebSocket<Data>, event: Json) => {
    const { data } = socket;
    switch (event["type"]) {
      case "session.update":
        data.session = { ...data.session, ...(event["session"] as Json) };
        tell(socket, { type: "session.updated", session: data.session });
        break;
      case "input_audio_buffer.append":
        if (event["audio"] === turn) speak(socket);
        break;
      case "input_audio_buffer.commit":
        received.push({ inputTokens: 50, outputTokens: 7 });
        tell(socket, {
          type: "conversation.item.input_audio_transcription.completed",
          ...{ item_id: "item_1", content_index: 0, transcript: "What was said." },
          usage: {
            ...{ type: "tokens", input_tokens: 50, output_tokens: 7, total_tokens: 57 },
            input_token_details: { text_tokens: 0, audio_tokens: 50 },
          },
        });
        break;
      case "conversation.item.create":
        tell(socket, { type: "conversation.item.added", item: event["item"] });
        break;
      case "response.create":
        if ((event["response"] as Json | undefined)?.["conversation"] === "wrong") {
          const error = { type: "invalid_request_error", code: "invalid_value", message: "No.", param: null };
          tell(socket, { type: "error", error: { ...error, event_id: event["event_id"] ?? null } });
        } else if ((event["response"] as Json | undefined)?.["conversation"] === "lost") {
          // LocalAI reports failures so, and sends no `response.done`.
          const response = { id: `resp_lost_${++lost}`, object: "realtime.response", status: "in_progress" };
          tell(socket, { type: "response.created", response });
          tell(socket, { type: "error", error: { type: "tts_error", message: "No voice.", event_id: "item_1" } });
        } else speak(socket);
        break;
      case "response.cancel":
        for (const id of [...data.open.keys()]) done(socket, id, "cancelled");
        break;
    }
  };

  const server = Bun.serve<Data>({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request, own) {
      const { pathname, search } = new URL(request.url);
      if (pathname === "/v1/models") {
        return Response.json({ object: "list", data: models.map((id) => ({ id, object: "model" })) });
      }
      if (pathname !== "/v1/realtime") return Response.json({ error: { message: "not here" } }, { status: 404 });
      const connection: RealtimeConnection = {
        ...{ path: pathname + search, headers: request.headers, events: [], closed: undefined },
        unsentBytes: 0,
        send: () => {},
        close: () => {},
      };
      const session = { type: "realtime", model: new URL(request.url).searchParams.get("model") };
      return own.upgrade(request, { data: { connection, session, open: new Map() } })
        ? undefined
        : new Response("no upgrade", { status: 426 });
    },
    websocket: {
      backpressureLimit: 1024 * 1024 * 1024,
      open(socket) {
        const { connection, session } = socket.data;
        connection.send = (event) => tell(socket, event);
        connection.close = (code) => socket.close(code);
        Object.defineProperty(connection, "unsentBytes", { get: () => socket.getBufferedAmount() });
        connections.push(connection);
        tell(socket, { type: "session.created", session });
      },
      message(socket, message) {
        const event = JSON.parse(String(message)) as Json;
        socket.data.connection.events.push(event);
        heard(socket, event);
      },
      close(socket, code) {
        socket.data.connection.closed = code;
        for (const { timer } of socket.data.open.values()) clearTimeout(timer);
      },
    },
  });

  const upstream: RealtimeUpstream = {
    url: `http://127.0.0.1:${server.port}/v1`,
    ...{ connections, received, begun: 0 },
    speaks: (next) => {
      pieces = next;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return upstream;
}
