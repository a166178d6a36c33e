// Pairs each tool call with its result, as model servers require. Clients leave some results out and send others late.
import type { AssistantTurn, CallPart, ConversationMessage, ResultTurn, TextPart, UserTurn } from "./conversation.ts";

const noResult: TextPart = { type: "text", text: "[no result was given]" };

/** Consecutive assistant turns, and the results of their tool calls. */
interface Run {
  readonly turns: AssistantTurn[];
  readonly results: (ResultTurn | undefined)[];
  readonly calls: { readonly call: CallPart; readonly turn: AssistantTurn }[];
}

interface OpenCall {
  readonly run: Run;
  readonly position: number;
}

/**
 * Returns the same turns, but directly after each run of assistant turns follows one result for each call, in the order
 * of the calls. A late result moves up, and a call without a result gets a placeholder. A result without a call, or a
 * second result of a call, becomes a text of the user, so that nothing is lost. Some models repeat call ids, so a
 * result belongs to the last call before it that has its id and no result yet.
 */
export function pairedCalls(turns: readonly ConversationMessage[]): ConversationMessage[] {
  const sequence: (ConversationMessage | Run)[] = [];
  const open = new Map<string, OpenCall[]>();
  let run: Run | undefined;
  for (const turn of turns) {
    if (turn.role === "assistant") {
      if (!run) {
        run = { turns: [], results: [], calls: [] };
        sequence.push(run);
      }
      run.turns.push(turn);
      for (const part of turn.parts) if (part.type === "call") run.calls.push({ call: part, turn });
      continue;
    }
    if (run) openCalls(run, open);
    run = undefined;
    if (turn.role !== "tool") {
      sequence.push(turn);
      continue;
    }
    const call = open.get(turn.callId)?.pop();
    if (call) call.run.results[call.position] = turn;
    else sequence.push(resultOfNothing(turn));
  }
  return sequence.flatMap((entry) => ("role" in entry ? [entry] : [...entry.turns, ...resultsOf(entry)]));
}

/**
 * Pushes the last call first: if two calls of a run have the same id, the first result then belongs to the first call.
 */
function openCalls(run: Run, open: Map<string, OpenCall[]>): void {
  for (let position = run.calls.length - 1; position >= 0; position--) {
    const callId = run.calls[position]?.call.callId ?? "";
    const calls = open.get(callId) ?? [];
    calls.push({ run, position });
    open.set(callId, calls);
  }
}

function resultsOf({ calls, results }: Run): ResultTurn[] {
  return calls.map(({ call, turn }, position) => {
    const { callId, kind } = call;
    return results[position] ?? { role: "tool", callId, kind, parts: [noResult], place: turn.place };
  });
}

function resultOfNothing({ callId, parts, place }: ResultTurn): UserTurn {
  const text = `[The result of a call "${callId}" that is not part of this conversation:]`;
  return { role: "user", parts: [{ type: "text", text }, ...parts], place };
}
