// The status of a batch as a word with an icon, and its progress.
import { Progress, Stack } from "@mantine/core";
import type { Batch } from "../../api/types.ts";
import { count } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

const looks: Record<Batch["status"], { name: string; kind: StateKind }> = {
  validating: { name: "Validating", kind: "waiting" },
  in_progress: { name: "In progress", kind: "waiting" },
  finalizing: { name: "Finalizing", kind: "waiting" },
  completed: { name: "Completed", kind: "good" },
  failed: { name: "Failed", kind: "bad" },
  expired: { name: "Expired", kind: "warning" },
  cancelling: { name: "Cancelling", kind: "waiting" },
  cancelled: { name: "Cancelled", kind: "plain" },
};

export function BatchState({ batch: { status } }: { batch: Batch }) {
  return <State kind={looks[status].kind}>{looks[status].name}</State>;
}

/** Reports whether a batch can still be cancelled. */
export function isOpen({ status }: Batch): boolean {
  return status === "validating" || status === "in_progress";
}

export function BatchProgress({ batch: { request_counts: counts } }: { batch: Batch }) {
  const { total, completed, failed } = counts;
  const share = (part: number) => (total === 0 ? 0 : (100 * part) / total);
  const text = `${count(completed + failed)} of ${count(total)}${failed === 0 ? "" : `, ${count(failed)} failed`}`;
  return (
    <Stack gap={4}>
      <SmallNote>{text}</SmallNote>
      <Progress.Root size="xs" aria-hidden>
        <Progress.Section value={share(completed)} color="green" />
        <Progress.Section value={share(failed)} color="red" />
      </Progress.Root>
    </Stack>
  );
}
