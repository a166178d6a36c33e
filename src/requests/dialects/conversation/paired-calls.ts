// Brings calls and their results together, as model servers want them: clients leave results out, and send some late.
import type { AssistantTurn, CallPart, ConversationMessage, ResultTurn, TextPart, UserTurn } from "./conversation.ts";

const noResult: TextPart = { type: "text", text: "[no result was given]" };

/** Assistant turns that follow each other, and the results of their calls. */
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
 * The same turns, in which each run of assistant turns is followed at once by one result for each of its calls, in the
 * order of the calls. Results that came later are moved up; a call without any gets one that says so. What is the result of
 * no call, or a second one, is told as the user's words, so that nothing is lost.
 *
 * A result belongs to the last call before it with its id that has none yet: some models use the same ids again and again.
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

/** The last goes in first: of two calls with one id in a run the first result is the first one's. */
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
