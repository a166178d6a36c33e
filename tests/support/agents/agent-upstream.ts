// A model server whose scripted model speaks the formats that it is told to, counts its tokens, and fails when it is told to.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { defaultModel, json } from "../scripted-upstream.ts";
import { type Api, apiOf, askedOf, type Body } from "./asked.ts";
import { nextTurn, type Task, type Turn } from "./scripted-model.ts";
import { type Count, piecesOf, speechOf } from "./speech.ts";

/** `cut`: the connection breaks in the middle of a stream. */
export type Fault = "429" | "503" | "cut" | "overflow";

/** One request of the gateway, and what the model did for it. */
export interface Served {
  requestId: string;
  api: Api;
  kind: Turn["kind"];
  done: number;
  body: Body;
  headers: IncomingMessage["headers"];
  fault: Fault | undefined;
  /** What it counted for an answer that was given whole; undefined where it failed. */
  count: Count | undefined;
}

export interface AgentUpstream {
  /** Base URL, ends in `/v1`. */
  url: string;
  served: Served[];
  /** Replaces the work, and forgets what was served and what was to fail. */
  work(task: Task): void;
  /** The next request of the work that has so many steps done fails so, once. */
  failAt(done: number, fault: Fault): void;
  /** Prompts that show so many steps, and no summary, count for so many tokens more. */
  weigh(heavy: { fromStep: number; tokens: number }): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** That the model says it has; tests give it no such prompt but where it is told to refuse one. */
export const agentContext = 200_000;
const tooMany = agentContext + 4_321;

/** All other paths are not there. */
export async function startAgentUpstream(apis: readonly Api[]): Promise<AgentUpstream> {
  let task: Task = { steps: [], end: "Done." };
  let heavy = { fromStep: Number.POSITIVE_INFINITY, tokens: 0 };
  const served: Served[] = [];
  const faults = new Map<number, Fault>();
  const server = createServer(async (req, res) => {
    res.on("error", () => {});
    if (req.method === "GET") return json(res, 200, { object: "list", data: [defaultModel] });
    const text = await textOf(req);
    const api = apiOf(req.url ?? "");
    if (!api || !apis.includes(api)) return json(res, 404, { error: { message: "There is no such path." } });
    const body = JSON.parse(text) as Body;
    const asked = askedOf(api, body);
    const turn = nextTurn(task, asked);
    const fault = turn.kind === "task" ? faults.get(turn.done) : undefined;
    if (fault) faults.delete(turn.done);
    const { headers } = req;
    const entry: Served = {
      ...{ requestId: String(headers["x-request-id"]), api, kind: turn.kind, done: turn.done, body, headers, fault },
      count: undefined,
    };
    served.push(entry);
    const isHeavy = turn.done >= heavy.fromStep && !asked.said.some((said) => said.includes("<summary>"));
    const prompt = Math.ceil(text.length / 4) + (isHeavy ? heavy.tokens : 0);
    const count = { prompt, cached: Math.floor(prompt / 3), completion: piecesOf(turn).length };
    const model = String(body["model"]);
    const options = body["stream_options"] as { include_usage?: boolean } | undefined;
    const speech = speechOf(api, { model, asked, turn, count, includeUsage: options?.include_usage === true });
    if (fault && fault !== "cut") return refuse(res, api, fault);
    if (body["stream"] !== true) {
      if (fault) return void res.destroy();
      entry.count = count;
      return json(res, 200, speech.whole);
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    if (fault) {
      res.write(speech.events.slice(0, Math.ceil(speech.events.length / 2)).join(""), () => void res.destroy());
      return;
    }
    // It is counted before the gateway can have booked it.
    entry.count = count;
    for (const event of speech.events) res.write(event);
    res.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    served,
    work(next) {
      task = next;
      heavy = { fromStep: Number.POSITIVE_INFINITY, tokens: 0 };
      served.length = 0;
      faults.clear();
    },
    failAt: (done, fault) => void faults.set(done, fault),
    weigh(next) {
      heavy = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** In the words of OpenAI's API, or of Anthropic's. */
function refuse(res: ServerResponse, api: Api, fault: Exclude<Fault, "cut">): void {
  const [status, message, type, code] = {
    "429": [429, "Rate limit reached for this model.", "rate_limit_error", "rate_limit_exceeded"] as const,
    "503": [503, "The model is overloaded.", "overloaded_error", "server_is_overloaded"] as const,
    overflow: [
      400,
      api === "messages"
        ? `prompt is too long: ${tooMany} tokens > ${agentContext} maximum`
        : `This model's maximum context length is ${agentContext} tokens. However, your messages resulted in ${tooMany} tokens.`,
      "invalid_request_error",
      "context_length_exceeded",
    ] as const,
  }[fault];
  const error = api === "messages" ? { type: "error", error: { type, message } } : { error: { message, type, code } };
  json(res, status, error, fault === "overflow" ? {} : { "retry-after": "1" });
}

async function textOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
