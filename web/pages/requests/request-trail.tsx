// The attempts of a request: each model server with its result, in words, oldest first.
import { Code, Group, Stack, Text } from "@mantine/core";
import type { RequestDetail, RequestStep } from "../../api/types.ts";
import { duration } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

type Result = RequestStep["result"];

/** The results of attempts: word, severity and meaning. */
const results: Record<Result, readonly [word: string, kind: StateKind, meaning: string]> = {
  answered: ["Answered", "good", "The server accepted the request."],
  refused: ["Failed", "bad", "The server answered with an error."],
  timed_out: ["Timed out", "bad", "The server did not answer in time."],
  unreachable: ["Connection failed", "bad", "No connection was made, or it ended before an answer."],
  broke_off: ["Cut off", "bad", "The server accepted the request, but its answer ended early or could not be read."],
  no_room: ["Out of memory", "warning", "The server answered, but the gateway could not buffer more of the answer."],
  cancelled: ["Cancelled", "plain", "The client disconnected, or the gateway stopped, before an answer."],
  queue_full: ["Queue full", "warning", "All model servers were busy, and the queue was full."],
  queue_timeout: ["Waited too long", "warning", "No model server became free in time."],
  resting: ["Skipped", "plain", "Paused after failures."],
  away: ["Skipped", "plain", "Not connected, or draining."],
  not_retried: ["Skipped", "plain", "Retry limit for this model reached."],
  overflowed: ["Overflowed", "plain", "The overflow policy of the model chose this server."],
  masked: ["Masked", "warning", "A guardrail replaced the content that it found."],
  blocked: ["Blocked", "warning", "A guardrail stopped the answer before the content that it found."],
  noted: ["Noted", "plain", "A guardrail found content and allowed it."],
  over_quota: ["Skipped", "warning", "This model costs more than a quota has left."],
};

/** Reports whether there is more to show than one successful attempt. */
export function isWorthTelling({ trail }: Pick<RequestDetail, "trail">): boolean {
  return trail.length > 1 || trail.some(({ result }) => result !== "answered");
}

export function RequestTrail({ request: { trail, model } }: { request: Pick<RequestDetail, "trail" | "model"> }) {
  const servers = Math.max(...trail.map(({ server }) => server ?? 0));
  return (
    <Stack component="ol" gap="md" p={0} m={0} style={{ listStyle: "none" }}>
      {trail.map((step) => (
        <Step
          key={`${step.started_ms} ${step.server} ${step.result} ${step.reason}`}
          {...{ step, servers }}
          asked={model}
        />
      ))}
    </Stack>
  );
}

interface StepProps {
  step: RequestStep;
  /** The number of different model servers that were tried. */
  servers: number;
  /** The id of the requested model. */
  asked: string | null;
}

function Step({ step, servers, asked }: StepProps) {
  const { result, status, reason, model, upstream_model, duration_ms, started_ms, left_out } = step;
  const [word, kind, meaning] = results[result];
  const models = [
    ...(model === asked ? [] : [`Fallback model: ${model}.`]),
    ...(upstream_model === null || upstream_model === model ? [] : [`Model name there: ${upstream_model}.`]),
  ];
  return (
    <li>
      {left_out > 0 && (
        <SmallNote mb="md">{left_out === 1 ? "1 step is not shown." : `${left_out} steps are not shown.`}</SmallNote>
      )}
      <Group gap="xs" justify="space-between" wrap="nowrap" align="start">
        <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }}>
          {nameOf(step, servers)}
        </Text>
        <State kind={kind}>{status === null ? word : `${word} with ${status}`}</State>
      </Group>
      <SmallNote>
        {meaning} {timesOf(started_ms, duration_ms)}
        {models.map((sentence) => ` ${sentence}`)}
      </SmallNote>
      {reason !== null && (
        <Code block mt={4} style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
          {reason}
        </Code>
      )}
    </li>
  );
}

const guarded: ReadonlySet<Result> = new Set(["masked", "blocked", "noted"]);

function nameOf({ server, upstream, result }: RequestStep, servers: number): string {
  if (guarded.has(result)) return "Guardrail";
  if (server === null) return "Queue";
  const number = `Model server ${server} of ${servers}`;
  return upstream === null ? number : `${number}: ${upstream}`;
}

function timesOf(startedMs: number, durationMs: number): string {
  const began = startedMs === 0 ? "Immediately" : `After ${duration(startedMs)}`;
  return durationMs === 0 ? `${began}.` : `${began}, for ${duration(durationMs)}.`;
}
