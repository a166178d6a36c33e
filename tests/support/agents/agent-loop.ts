// The loop of an agent around an SDK: asks, runs the tools that are called, and goes on as agents do when something fails.
import { readFileSync, writeFileSync } from "node:fs";
import { type AgentWorld, blue, red, theEnd, thePrompt } from "./agent-world.ts";
import type { Task } from "./scripted-model.ts";

export interface Called {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

/** What differs between SDKs. `Item`: of a conversation. */
export interface AgentSdk<Item> {
  user(text: string): Item;
  /** One turn: what the conversation goes on with, and what was called. */
  ask(conversation: readonly Item[]): Promise<{ items: readonly Item[]; calls: readonly Called[]; text: string }>;
  results(results: readonly { call: Called; output: string }[]): readonly Item[];
  /** Whether the conversation has become too long. */
  isOverflow(error: unknown): boolean;
  /** Makes it short. */
  compact(conversation: readonly Item[]): Promise<readonly Item[]>;
}

const maxTurns = 20;

/** Returns the text that the model ended with. A turn that failed is tried again once. */
export async function runAgent<Item>(sdk: AgentSdk<Item>, world: AgentWorld): Promise<string> {
  let conversation: readonly Item[] = [sdk.user(thePrompt)];
  let again = true;
  for (let turn = 0; turn < maxTurns; turn++) {
    try {
      const { items, calls, text } = await sdk.ask(conversation);
      again = true;
      conversation = [...conversation, ...items];
      if (calls.length === 0) return text;
      const results = calls.map((call) => ({ call, output: runTool(call, world) }));
      conversation = [...conversation, ...sdk.results(results)];
    } catch (error) {
      if (sdk.isOverflow(error)) conversation = await sdk.compact(conversation);
      else if (again) again = false;
      else throw error;
    }
  }
  throw new Error(`Not done after ${maxTurns} turns.`);
}

const text = { type: "string" };

/** The tools that SDKs are given, with their parameters as JSON Schema. */
export const fileTools = [
  {
    name: "read_file",
    description: "Reads a file of the folder.",
    parameters: { type: "object", properties: { path: text }, required: ["path"], additionalProperties: false },
  },
  {
    name: "edit_file",
    description: "Replaces a text in a file of the folder.",
    parameters: {
      type: "object",
      properties: { path: text, old: text, new: text },
      required: ["path", "old", "new"],
      additionalProperties: false,
    },
  },
] as const;

/** What a model does with these tools: look, edit, look again. */
export const fileTask: Task = {
  steps: [
    { tool: "read_file", arguments: { path: "notes.txt" } },
    { tool: "edit_file", arguments: { path: "notes.txt", old: red, new: blue } },
    { tool: "read_file", arguments: { path: "notes.txt" } },
  ],
  end: theEnd,
};

export function runTool(call: Pick<Called, "name" | "arguments">, world: AgentWorld): string {
  const { path, old, new: now } = call.arguments;
  if (path !== "notes.txt") return `There is no file ${String(path)}.`;
  const content = readFileSync(world.file, "utf8");
  if (call.name === "read_file") return content;
  if (call.name !== "edit_file") return `There is no tool ${call.name}.`;
  writeFileSync(world.file, content.replace(String(old), String(now)));
  return "Done.";
}
