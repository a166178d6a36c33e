// The recent deliveries of a webhook, with the result of each attempt.
import { List, Skeleton, Stack } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { WebhookAttempt, WebhookDelivery, WebhookDeliveryList } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

const states: Record<WebhookDelivery["state"], { kind: StateKind; word: string }> = {
  pending: { kind: "waiting", word: "Waiting" },
  delivered: { kind: "good", word: "Delivered" },
  failed: { kind: "bad", word: "Failed" },
};

export function Deliveries({ path }: { path: string }) {
  const { data, error, refetch } = useRead<WebhookDeliveryList>(path, { limit: 20 }, { everyMs: 3_000 });
  if (error) return <Failure error={error} retry={refetch} />;
  if (!data) return <Skeleton height={120} role="status" aria-label="Loading the deliveries" />;
  if (data.data.length === 0) return <Note>No deliveries in the last 30 days.</Note>;
  return (
    <Stack gap="sm">
      <List listStyleType="none" spacing="sm" size="sm">
        {data.data.map((delivery) => (
          <List.Item key={delivery.id}>
            <Delivery delivery={delivery} />
          </List.Item>
        ))}
      </List>
      {data.has_more && (
        <Note>Only the newest deliveries are shown. The API lists all deliveries of the last 30 days.</Note>
      )}
    </Stack>
  );
}

function Delivery({ delivery: { type, state, attempts, created_at: made, next_attempt_at: next } }: DeliveryProps) {
  const last = attempts.at(-1);
  return (
    <>
      <State kind={states[state].kind}>{states[state].word}</State> {type}, <Ago seconds={made} />
      <SmallNote>
        {last === undefined ? "No attempt yet." : `${attemptsText(attempts.length)}, last result: ${cameOf(last)}.`}
        {next !== null && last !== undefined && (
          <>
            {" "}
            Next attempt <Ago seconds={next} />.
          </>
        )}
      </SmallNote>
    </>
  );
}

interface DeliveryProps {
  delivery: WebhookDelivery;
}

function attemptsText(count: number): string {
  return count === 1 ? "One attempt" : `${String(count)} attempts`;
}

function cameOf({ status, error, duration_ms: ms }: WebhookAttempt): string {
  const what = status === null ? (error ?? "no answer").replaceAll("_", " ") : `status ${String(status)}`;
  return `${what} after ${String(ms)} ms`;
}
