// Converts stop reasons between Messages and the neutral format.
import type { ReplyEnd } from "../conversation/reply.ts";

const reasons: ReadonlyMap<string | undefined, ReplyEnd["reason"]> = new Map([
  ["end_turn", "stop"],
  ["max_tokens", "length"],
  ["stop_sequence", "sequence"],
  ["tool_use", "calls"],
  ["pause_turn", "pause"],
  ["refusal", "refusal"],
  ["model_context_window_exceeded", "context"],
  // These are OpenAI's finish reasons. Some servers send them unchanged.
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

/**
 * Returns the neutral end reason that corresponds to Anthropic's stop reason. An unknown stop reason counts as an
 * ordinary stop.
 */
export function endOf(stopReason: string | undefined, sequence: string | undefined): ReplyEnd {
  const reason = reasons.get(stopReason) ?? "stop";
  return reason === "sequence" ? { reason, sequence } : { reason };
}

/**
 * Returns the stop reason of Anthropic that corresponds to the reported reason. An unknown reason is returned
 * unchanged.
 */
export function strictReason(reported: string | undefined, hasCalls: boolean): string {
  const reason = reported ? reasons.get(reported) : "stop";
  if (reason === "stop" && hasCalls) return names.calls;
  return reason ? names[reason] : (reported as string);
}

/**
 * Returns Anthropic's stop reason for an end. If an answer has calls or was refused, servers of other formats may still
 * report an ordinary reason, so the reason is corrected. If an answer had no call, `tool_use` would make the client
 * wait forever.
 */
export function stopReasonOf({ reason }: ReplyEnd, hasCalls: boolean, hasRefusal: boolean): string {
  if (reason === "stop" && hasRefusal) return names.refusal;
  if (reason === "stop" && hasCalls) return names.calls;
  if (reason === "calls" && !hasCalls) return names.stop;
  return names[reason];
}
