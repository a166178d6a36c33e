// A model that works off a list of steps: what it does next depends on the conversation alone, as with a real one.
import type { Asked } from "./asked.ts";

/** A call of a tool of the client's; a custom tool gets `input` alone. */
export interface Call {
  tool: string;
  /** Responses: that in which the tool was offered. */
  namespace?: string;
  arguments: Record<string, unknown>;
}

/** What it answers: a call, or a text. */
export interface Turn {
  /** `task`: a step of the work, or its end; `summary`: of the conversation; `aside`: a title and the like. */
  kind: "task" | "summary" | "aside";
  /** How many steps the conversation shows as done. */
  done: number;
  call?: Call & { id: string };
  text: string;
}

export interface Task {
  /** One a turn. */
  steps: readonly Call[];
  /** Said once all of them are done. */
  end: string;
}

/** The words by which the clients ask for a summary, in the last message or in the instructions. */
const wantsSummary =
  /CONTEXT CHECKPOINT COMPACTION|create a detailed summary|detailed summary of (?:the|our|this) conversation|anchored summary|context summarization|summari[sz]e the conversation|sum up our conversation/i;
const stepsDone = /(\d+) steps of the task are done/g;

/** Calls carry their step in the id, and summaries name it, so that it is known after a compaction as well. */
export function nextTurn(task: Task, asked: Asked): Turn {
  const done = stepsSeen(asked);
  const [instructions = ""] = asked.said;
  // Claude Code puts a note of its own behind what it asks.
  const last = asked.said.slice(-2).join("\n");
  if (asked.isToCompact || wantsSummary.test(last) || (asked.tools.size === 0 && wantsSummary.test(instructions))) {
    return { kind: "summary", done, text: `<summary>${done} steps of the task are done.</summary>` };
  }
  const step = task.steps[done];
  const isOffered = task.steps.every(({ tool }) => asked.tools.has(tool));
  if (!isOffered) return { kind: "aside", done, text: '{"title": "Some work", "isNewTopic": true}' };
  if (!step) return { kind: "task", done, text: task.end };
  return { kind: "task", done, text: "", call: { ...step, id: `call_step${done + 1}` } };
}

function stepsSeen({ results, said }: Asked): number {
  const ofResults = [...results.keys()].map((id) => Number(/step(\d+)/.exec(id)?.[1] ?? 0));
  const ofSummaries = said.flatMap((text) => [...text.matchAll(stepsDone)].map(([, count]) => Number(count)));
  return Math.max(0, ...ofResults, ...ofSummaries);
}
