// A model server whose answers wait, word by word, until a test lets them go on; in either format.
import type { ServerResponse } from "node:http";
import { chunk, json, type Script, type ScriptedUpstream, startUpstream, usage } from "./scripted-upstream.ts";

export interface GatedUpstream extends ScriptedUpstream {
  /** Lets the answers that are open say one more word each. */
  say(word: string): void;
  /** Lets them end. */
  finish(): void;
  /** Breaks them off. */
  breakOff(): void;
  /** Answers with gates again, after a test had another script. */
  gated(): void;
  /** How many are open. */
  open(): number;
}

/** What one open answer says next, and how it ends. */
interface Gate {
  say(word: string): void;
  finish(): void;
  breakOff(): void;
}

export async function startGatedUpstream(spoken: "chat" | "responses" = "chat"): Promise<GatedUpstream> {
  const gates = new Set<Gate>();
  const path = spoken === "responses" ? "/v1/responses" : "/v1/chat/completions";
  const script: Script = (request, res) => {
    // It cannot count.
    if (request.path !== path) return json(res, 404, { error: { message: "not found" } });
    res.writeHead(200, { "content-type": "text/event-stream" });
    const gate = {
      ...(spoken === "responses" ? responseGate(res) : chatGate(res)),
      breakOff: () => void res.destroy(),
    };
    gates.add(gate);
    res.on("close", () => gates.delete(gate));
  };
  const upstream = await startUpstream(script);
  if (spoken === "responses") upstream.speaks("/v1/responses");
  return Object.assign(upstream, {
    say(word: string) {
      for (const gate of gates) gate.say(word);
    },
    finish() {
      for (const gate of gates) gate.finish();
    },
    breakOff() {
      for (const gate of gates) gate.breakOff();
    },
    gated: () => upstream.script(script),
    open: () => gates.size,
  });
}

function chatGate(res: ServerResponse): Omit<Gate, "breakOff"> {
  res.write(chunk({ role: "assistant", content: "" }));
  return {
    say: (word) => res.write(chunk({ content: word })),
    finish() {
      res.write(chunk({}, "stop", { usage }));
      res.end("data: [DONE]\n\n");
    },
  };
}

function responseGate(res: ServerResponse): Omit<Gate, "breakOff"> {
  let [number, text] = [0, ""];
  const tell = (type: string, members: object) =>
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...members })}\n\n`);
  const head = { id: "resp_up", object: "response", created_at: 1, model: "upstream-model", background: false };
  const at = { item_id: "msg_up", output_index: 0, content_index: 0 };
  const part = () => ({ type: "output_text", text, annotations: [], logprobs: [] });
  const item = { id: "msg_up", type: "message", role: "assistant" };
  tell("response.created", { response: { ...head, status: "in_progress", output: [] } });
  tell("response.in_progress", { response: { ...head, status: "in_progress", output: [] } });
  tell("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } });
  tell("response.content_part.added", { ...at, part: part() });
  return {
    say(word) {
      text += word;
      tell("response.output_text.delta", { ...at, delta: word, logprobs: [] });
    },
    finish() {
      const done = { ...item, status: "completed", content: [part()] };
      tell("response.output_text.done", { ...at, text, logprobs: [] });
      tell("response.content_part.done", { ...at, part: part() });
      tell("response.output_item.done", { output_index: 0, item: done });
      const tokens = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens, total_tokens: 9 };
      tell("response.completed", { response: { ...head, status: "completed", output: [done], usage: tokens } });
      res.end();
    },
  };
}
