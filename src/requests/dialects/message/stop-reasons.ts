// Why an answer ended, in the words of Messages and in no format's in particular.
import type { ReplyEnd } from "../conversation/reply.ts";

const reasons: ReadonlyMap<string | undefined, ReplyEnd["reason"]> = new Map([
  ["end_turn", "stop"],
  ["max_tokens", "length"],
  ["stop_sequence", "sequence"],
  ["tool_use", "calls"],
  ["pause_turn", "pause"],
  ["refusal", "refusal"],
  ["model_context_window_exceeded", "context"],
  // Words of OpenAI's API, which some servers leave as they are.
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "calls"],
  ["content_filter", "filter"],
]);

const names: Readonly<Record<ReplyEnd["reason"], string>> = {
  stop: "end_turn",
  sequence: "stop_sequence",
  calls: "tool_use",
  length: "max_tokens",
  context: "model_context_window_exceeded",
  filter: "refusal",
  refusal: "refusal",
  pause: "pause_turn",
};

/** A reason that is not known ended the answer all the same. */
export function endOf(stopReason: string | undefined, sequence: string | undefined): ReplyEnd {
  const reason = reasons.get(stopReason) ?? "stop";
  return reason === "sequence" ? { reason, sequence } : { reason };
}

/** Returns Anthropic's word for what a server told, or the server's own where that is not known. */
export function strictReason(told: string | undefined, hasCalls: boolean): string {
  const reason = told ? reasons.get(told) : "stop";
  if (reason === "stop" && hasCalls) return names.calls;
  return reason ? names[reason] : (told as string);
}

/**
 * Servers of other formats end an answer with calls, or one that the model refused, as any other. Without a call there are
 * none to wait for, whatever the server says.
 */
export function stopReasonOf({ reason }: ReplyEnd, hasCalls: boolean, hasRefusal: boolean): string {
  if (reason === "stop" && hasRefusal) return names.refusal;
  if (reason === "stop" && hasCalls) return names.calls;
  if (reason === "calls" && !hasCalls) return names.stop;
  return names[reason];
}
