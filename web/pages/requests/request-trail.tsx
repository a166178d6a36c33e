// What was tried for a request: each model server with what came of it, in words, oldest first.
import { Code, Group, Stack, Text } from "@mantine/core";
import type { RequestDetail, RequestStep } from "../../api/types.ts";
import { duration } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

type Result = RequestStep["result"];

const words: Record<Result, string> = {
  answered: "Answered",
  refused: "Refused",
  timed_out: "Timed out",
  unreachable: "Connection failed",
  broke_off: "Broke off",
  no_room: "No room",
  cancelled: "Left",
  queue_full: "Queue full",
  queue_timeout: "No place in time",
  resting: "Not asked",
  away: "Not asked",
  not_retried: "Not asked",
};

const kinds: Record<Result, StateKind> = {
  answered: "good",
  refused: "bad",
  timed_out: "bad",
  unreachable: "bad",
  broke_off: "bad",
  no_room: "warning",
  cancelled: "plain",
  queue_full: "warning",
  queue_timeout: "warning",
  resting: "plain",
  away: "plain",
  not_retried: "plain",
};

const meanings: Record<Result, string> = {
  answered: "It took the request.",
  refused: "It answered with an error.",
  timed_out: "It did not answer in time.",
  unreachable: "No connection came about, or it ended before an answer.",
  broke_off: "It took the request, and its answer ended early or could not be read.",
  no_room: "It took the request, and the gateway could hold no more of its answer.",
  cancelled: "The client left, or the server stopped, before it had answered.",
  queue_full: "No place was free at a model server, and the queue took no more.",
  queue_timeout: "No place at a model server became free in time.",
  resting: "It rests for a moment after failures.",
  away: "It is not connected, or is being taken out of service.",
  not_retried: "Too many requests for this model were second tries already.",
};

/** Whether the trail says more than that one model server answered. */
export function isWorthTelling({ trail }: Pick<RequestDetail, "trail">): boolean {
  return trail.length > 1 || trail.some(({ result }) => result !== "answered");
}

export function RequestTrail({ request: { trail, model } }: { request: Pick<RequestDetail, "trail" | "model"> }) {
  const servers = Math.max(...trail.map(({ server }) => server ?? 0));
  return (
    <Stack component="ol" gap="md" p={0} m={0} style={{ listStyle: "none" }}>
      {trail.map((step) => (
        <Step key={`${step.started_ms} ${step.server} ${step.result}`} {...{ step, servers }} asked={model} />
      ))}
    </Stack>
  );
}

interface StepProps {
  step: RequestStep;
  /** Different model servers of the trail. */
  servers: number;
  /** The model that was asked for. */
  asked: string | null;
}

function Step({ step, servers, asked }: StepProps) {
  const { result, status, reason, model, upstream_model, duration_ms, started_ms, left_out } = step;
  const models = [
    ...(model === asked ? [] : [`for ${model}, which stood in`]),
    ...(upstream_model === null || upstream_model === model ? [] : [`as ${upstream_model}`]),
  ];
  return (
    <li>
      {left_out > 0 && (
        <SmallNote mb="md">
          {left_out === 1 ? "1 step is left out here." : `${left_out} steps are left out here.`}
        </SmallNote>
      )}
      <Group gap="xs" justify="space-between" wrap="nowrap" align="start">
        <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }}>
          {nameOf(step, servers)}
        </Text>
        <State kind={kinds[result]}>{status === null ? words[result] : `${words[result]} with ${status}`}</State>
      </Group>
      <SmallNote>
        {meanings[result]} {timesOf(started_ms, duration_ms)}
        {models.length > 0 && ` It was asked ${models.join(", ")}.`}
      </SmallNote>
      {reason !== null && (
        <Code block mt={4} style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
          {reason}
        </Code>
      )}
    </li>
  );
}

function nameOf({ server, upstream }: RequestStep, servers: number): string {
  if (server === null) return "Queue";
  const number = `Model server ${server} of ${servers}`;
  return upstream === null ? number : `${number}: ${upstream}`;
}

function timesOf(startedMs: number, durationMs: number): string {
  const began = startedMs === 0 ? "At once" : `After ${duration(startedMs)}`;
  return durationMs === 0 ? `${began}.` : `${began}, for ${duration(durationMs)}.`;
}
