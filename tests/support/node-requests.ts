// What tests of nodes ask, and how they read an answer that is still on its way.
import { until } from "./headrace.ts";
import type { Gateway } from "./nodes.ts";
import { chunk, type Script } from "./scripted-upstream.ts";

export const messages = [{ role: "user" as const, content: "Hi" }];
export const model = "upstream-model";

export const ask = (gateway: Pick<Gateway, "request">, more: Record<string, unknown> = {}): Promise<Response> =>
  gateway.request("/v1/chat/completions", { body: { model, messages, ...more } });

/** A row of the list of requests. */
export const usageRow = (gateway: Gateway, match: Record<string, unknown>): Promise<Record<string, unknown>> =>
  until(
    async () => {
      const list = (await (await gateway.request("/v1/requests")).json()) as { data: Record<string, unknown>[] };
      return list.data.find((row) => Object.entries(match).every(([name, value]) => row[name] === value));
    },
    `a usage row with ${JSON.stringify(match)}`,
  );

export interface Endless {
  script: Script;
  /** Lets the answers end. */
  release(): void;
  /** Whether nobody listens any more. */
  left(): boolean;
}

/** Sends words until it is told to stop, or nobody reads any more. */
export function endless(): Endless {
  let released = false;
  let open = 0;
  return {
    release: () => {
      released = true;
    },
    left: () => open === 0,
    script: async (_request, res) => {
      let left = false;
      open++;
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.on("close", () => {
        left = true;
        open--;
      });
      while (!released && !left) {
        res.write(chunk({ content: "word " }));
        await Bun.sleep(5);
      }
      res.write(chunk({}, "stop"));
      res.end("data: [DONE]\n\n");
    },
  };
}

/** Reads until so many events came, and goes on in the background. */
export async function reading(
  response: Response,
  events: number,
): Promise<{ text(): string; whole: Promise<string>; leave(): Promise<void> }> {
  let text = "";
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const more = async () => {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (value) text += decoder.decode(value, { stream: true });
    return !done;
  };
  while (text.split("data: ").length <= events) if (!(await more())) break;
  const rest = async () => {
    while (await more());
    return text;
  };
  return { text: () => text, whole: rest(), leave: () => reader.cancel() };
}
