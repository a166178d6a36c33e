// Tests streamed answers byte by byte, as SDKs read them, and the effect of abandoning a stream.
import { type ClientCheck, headerFaults, type Surroundings, statusFaults, type Verdict } from "./client-check.ts";
import { chatChunk, faultsOf } from "./shapes.ts";
import { parsed, type Wire } from "./wire.ts";

const fewTokens = 24;
/** Token limit of the answer that the test abandons before its end. */
const manyTokens = 400;
const bookedWithinMs = 5_000;
const pollMs = 100;

export function streamChecks({ wire, chat }: Surroundings): ClientCheck[] {
  if (!chat) return [];
  const messages = [{ role: "user", content: "Say hello." }];
  const body = { model: chat.id, messages, max_tokens: fewTokens, temperature: 0, stream: true };
  const counted = { ...body, stream_options: { include_usage: true } };
  const long = {
    ...{ ...body, max_tokens: manyTokens },
    messages: [{ role: "user", content: "Count from 1 to 500, each number on a line of its own." }],
  };
  return [
    {
      name: "stream",
      sent: `POST /chat/completions ${JSON.stringify(body)}`,
      run: (signal) => stream(wire, body, signal),
    },
    {
      name: "stream with usage",
      sent: `POST /chat/completions ${JSON.stringify(counted)}`,
      run: (signal) => stream(wire, counted, signal),
    },
    {
      name: "stream of no model",
      sent: "POST /chat/completions with stream: true and a model that does not exist",
      async run(signal) {
        const answer = await wire.ask("/chat/completions", signal, { body: { ...body, model: "no-such-model-here" } });
        return { seen: "404 as JSON, before the stream", wrong: statusFaults(answer, 404) };
      },
    },
    {
      name: "left in the middle",
      sent: `POST /chat/completions ${JSON.stringify(long)}, closed after the first text`,
      run: (signal) => leave(wire, long, signal),
    },
  ];
}

async function stream(wire: Wire, body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Verdict> {
  const answer = await wire.ask("/chat/completions", signal, { body, headers: { accept: "text/event-stream" } });
  const head = statusFaults(answer, 200, "text/event-stream");
  if (head.length > 0) {
    return {
      seen: "",
      wrong: head,
      ...(answer.status === 200 ? { remedy: "Let the proxy in front leave the header content-type as it is." } : {}),
    };
  }
  const { events, wrong } = eventsIn(answer.text);
  // If the events are unreadable, no further checks are possible.
  if (wrong.length > 0) return { seen: "", wrong };
  const chunks = events.filter((event) => event !== "[DONE]").map(parsed) as Chunk[];
  wire.count(chunks.findLast((chunk) => chunk?.usage)?.usage?.total_tokens);
  const isCounted = "stream_options" in body;
  const all = [...endFaults(events), ...chunkFaults(chunks), ...usageFaults(chunks, isCounted)];
  return { seen: `${chunks.length} chunks and [DONE]`, wrong: [...all, ...headerFaults(answer)] };
}

interface Chunk {
  id?: string;
  choices?: { delta?: { role?: string; content?: string | null }; finish_reason?: string | null }[];
  usage?: { total_tokens?: number } | null;
}

/**
 * Splits a stream into events (WHATWG HTML, 9.2.6), as far as SDKs implement it. A stream has lines of data and
 * comments, and an empty line after each event.
 */
function eventsIn(text: string): { events: string[]; wrong: string[] } {
  const wrong = new Set<string>();
  const events: string[] = [];
  let data: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.length > 0) events.push(data.join("\n"));
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice("data:".length).replace(/^ /, ""));
    } else if (!line.startsWith(":") && !/^(event|id|retry):/.test(line)) {
      wrong.add("a line is neither data nor a comment");
    }
  }
  if (data.length > 0) wrong.add("the last event is not ended by an empty line");
  if (events.some((event) => event !== "[DONE]" && parsed(event) === undefined)) wrong.add("an event is no JSON");
  if (events.some((event) => (parsed(event) as { error?: unknown } | undefined)?.error !== undefined))
    wrong.add("an error came in the middle of the stream");
  return { events, wrong: [...wrong] };
}

function endFaults(events: readonly string[]): string[] {
  const ends = events.filter((event) => event === "[DONE]").length;
  if (ends === 0) return ["data: [DONE] is missing: SDKs take it for a connection that broke"];
  if (ends > 1) return ["data: [DONE] comes more than once"];
  return events.at(-1) === "[DONE]" ? [] : ["something follows data: [DONE]"];
}

function chunkFaults(chunks: readonly Chunk[]): string[] {
  const shape = chunks.flatMap((chunk) => faultsOf(chatChunk, chunk)).slice(0, 2);
  if (shape.length > 0) return shape;
  const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
  const reasons = choices.filter((choice) => choice.finish_reason != null).length;
  const [first] = choices;
  return [
    ...(first?.delta?.role === "assistant" ? [] : ["the first chunk has no role assistant in its delta"]),
    ...(reasons === 1 ? [] : [`${reasons} chunks have a finish_reason instead of one`]),
    ...(choices.at(-1)?.finish_reason ? [] : ["the last choice has no finish_reason"]),
    ...(new Set(chunks.map(({ id }) => id)).size > 1 ? ["the chunks have different ids"] : []),
  ];
}

function usageFaults(chunks: readonly Chunk[], isCounted: boolean): string[] {
  const last = chunks.at(-1);
  const others = chunks.slice(0, -1);
  if (!isCounted) {
    const hasUsage = chunks.some(({ usage, choices }) => usage != null || choices?.length === 0);
    return hasUsage ? ["usage comes without being asked for: SDKs stumble over a chunk without choices"] : [];
  }
  if (!last?.usage || last.choices?.length !== 0)
    return ["the last chunk before [DONE] has no usage with empty choices"];
  return others.some(({ usage }) => usage !== null) ? ["usage is not null in the chunks before the last"] : [];
}

const tooLate: Verdict = { seen: "the answer was over before it could be left", wrong: [], isSkipped: true };

/**
 * Tests an abandoned stream. Clients abandon streams routinely: leaving the loop over a stream closes the connection.
 */
async function leave(wire: Wire, body: unknown, signal: AbortSignal): Promise<Verdict> {
  const controller = new AbortController();
  const response = await wire.open("/chat/completions", AbortSignal.any([signal, controller.signal]), { body });
  const requestId = response.headers.get("x-request-id");
  if (response.status !== 200 || !response.body) {
    await response.body?.cancel();
    return { seen: "", wrong: [`status ${response.status} instead of 200`] };
  }
  const isOver = await readFirstText(response.body);
  controller.abort();
  if (isOver) return tooLate;
  if (requestId === null) return { seen: "", wrong: ["x-request-id is missing"] };
  return booked(wire, requestId, signal);
}

/** Reads until the first text of the answer. Returns true if the stream ended before. */
async function readFirstText(body: ReadableStream<Uint8Array>): Promise<boolean> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes("[DONE]")) return true;
    if (/"content":"[^"]/.test(text)) return false;
  }
  return true;
}

/** Checks that the request's record soon says cancelled, with the tokens that were delivered. */
async function booked(wire: Wire, requestId: string, signal: AbortSignal): Promise<Verdict> {
  const untilMs = performance.now() + bookedWithinMs;
  for (;;) {
    const { status, json } = await wire.ask(`/requests/${requestId}`, signal);
    if (status === 403)
      return { seen: "closed; the key may not read how it was booked (usage:read)", wrong: [], isSkipped: true };
    if (status === 200) return outcomeOf(wire, json);
    if (performance.now() > untilMs)
      return notCancelled(`it is not booked (${status}) ${bookedWithinMs / 1000} s after the client has left`);
    await Bun.sleep(pollMs);
  }
}

function outcomeOf(wire: Wire, json: unknown): Verdict {
  const { outcome, completion_tokens: tokens } = (json ?? {}) as { outcome?: string; completion_tokens?: number };
  if (outcome === "completed") return tooLate;
  if (outcome !== "cancelled") return notCancelled(`it is booked as ${outcome}, and not as cancelled`);
  wire.count(tokens);
  return { seen: `booked as cancelled, with ${tokens} token${tokens === 1 ? "" : "s"}`, wrong: [] };
}

function notCancelled(what: string): Verdict {
  const remedy =
    "The proxy in front has to close its connection when the client does: for nginx proxy_ignore_client_abort off and proxy_buffering off.";
  return { seen: "", wrong: [what], remedy };
}
