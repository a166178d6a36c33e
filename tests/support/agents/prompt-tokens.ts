// Counts the tokens of what a client asks, as a script model must see it, from the client's own words in any of the formats.
import { afterCall, saidCall } from "../llama/script-model.ts";
import type { Api, Body } from "./asked.ts";
import type { Call } from "./scripted-model.ts";

type Message =
  | { role: "system" | "user"; text: string }
  /** `call`: what it answers; undefined where the client only refers to it. */
  | { role: "result"; text: string; call: Call | undefined };

/** What is to be seen of a request by a model that knows none of the formats. */
export interface Shown {
  /** Names of the functions that are offered. */
  tools: readonly string[];
  /** With the results of tools in their order; what the model said beside its calls is left out. */
  messages: readonly Message[];
  /** Whether a call may be followed by another. */
  parallel: boolean;
}

export function shownBy(api: Api, body: Body): Shown {
  return { chat: shownByChat, responses: shownByResponses, messages: shownByMessages }[api](body);
}

/** A tool, the beginning of a message and its end are a token each, and so is each byte in between. */
export function promptTokens({ tools, messages }: Shown, steps: readonly Call[]): number {
  const results = messages.filter(({ role }) => role === "result");
  const ofMessages = messages.map((message) => {
    // Two messages of one role are one, with an empty line between them, which is as long as what is around a message.
    const own = 2 + Buffer.byteLength(message.text);
    if (message.role !== "result") return own;
    const call = message.call ?? steps[results.indexOf(message)];
    return own + (call ? 2 + Buffer.byteLength(callText(call)) : 0);
  });
  // The answer has a beginning as well, and the sign for its turn.
  return ofMessages.reduce((sum, tokens) => sum + tokens, tools.length + 2);
}

function callText({ tool, arguments: given }: Call): string {
  return [...saidCall(tool, spaced(given)), afterCall].join("");
}

/** JSON as models are used to it: with a space behind each colon and comma. */
export function spaced(given: Call["arguments"]): string {
  const members = Object.entries(given).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  return `{${members.join(", ")}}`;
}

function shownByChat(body: Body): Shown {
  const all = objects(body["messages"]);
  const called = new Map(
    all
      .flatMap(({ tool_calls: calls }) => objects(calls))
      .map(({ id, function: target }) => [id, callOf(target as Body, (target as Body)["arguments"])]),
  );
  const messages = all.flatMap(({ role, content, tool_call_id: id }): Message[] => {
    const text = texts(content).join("");
    if (role === "tool") return [{ role: "result", text, call: called.get(id) }];
    if (role === "assistant") return [];
    return [{ role: role === "user" ? "user" : "system", text }];
  });
  const tools = objects(body["tools"]).map((tool) => nameOf(tool["function"] as Body));
  return { tools, messages, parallel: body["parallel_tool_calls"] !== false };
}

/** Hosted tools are nothing to a model elsewhere; tools of a namespace are functions to it. */
function shownByResponses(body: Body): Shown {
  const { input, instructions } = body;
  const items = typeof input === "string" ? [{ role: "user", content: input }] : (objects(input) as Body[]);
  const calls = items.filter(({ type }) => type === "function_call");
  const called = new Map(calls.map((item) => [item["call_id"], callOf(item, item["arguments"])]));
  const messages = items.flatMap(({ type, role, content, output, call_id: id }): Message[] => {
    const result = texts(output).join("\n");
    if (type === "function_call_output") return [{ role: "result", text: result, call: called.get(id) }];
    if (role === "user") return [{ role, text: texts(content).join("") }];
    return role === "developer" || role === "system" ? texts(content).map(instruction) : [];
  });
  const tools = objects(body["tools"]).flatMap((tool) => {
    if (tool["type"] === "namespace") return objects(tool["tools"]);
    return tool["type"] === "function" ? [tool] : [];
  });
  return {
    tools: tools.map(nameOf),
    messages: [...texts(instructions).map(instruction), ...messages],
    parallel: body["parallel_tool_calls"] !== false,
  };
}

/** Claude Code's line for the bill is for Anthropic alone, and its deferred tools are none yet. */
function shownByMessages(body: Body): Shown {
  const system = texts(body["system"]).filter((text) => !text.startsWith("x-anthropic-billing-header:"));
  const all = objects(body["messages"]);
  const uses = all.flatMap(({ content }) => objects(content)).filter(({ type }) => type === "tool_use");
  const called = new Map(uses.map((use) => [use["id"], callOf(use, use["input"])]));
  const messages = all.flatMap(({ role, content }): Message[] => {
    if (role === "assistant") return [];
    const results = objects(content)
      .filter(({ type }) => type === "tool_result")
      .map((block): Message => {
        return { role: "result", text: texts(block["content"]).join("\n"), call: called.get(block["tool_use_id"]) };
      });
    const text = texts(content).join("");
    if (text === "") return results;
    return [...results, { role: "user", text: role === "system" ? `<system>\n${text}\n</system>` : text }];
  });
  const tools = objects(body["tools"]).filter((tool) => tool["defer_loading"] !== true);
  const choice = body["tool_choice"] as Body | undefined;
  return {
    tools: tools.map(nameOf),
    messages: [...system.map(instruction), ...messages],
    parallel: choice?.["disable_parallel_tool_use"] !== true,
  };
}

const instruction = (text: string): Message => ({ role: "system", text });

function callOf(named: Body, given: unknown): Call {
  const read = typeof given === "string" ? JSON.parse(given) : given;
  return { tool: nameOf(named), arguments: read as Call["arguments"] };
}

const nameOf = ({ name }: Body) => String(name);

/** A text is given as it is, or in parts. */
function texts(content: unknown): string[] {
  if (typeof content === "string") return [content];
  return objects(content).flatMap(({ text }) => (typeof text === "string" ? [text] : []));
}

function objects(value: unknown): Body[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "object" && entry !== null) : [];
}
