// One batch: its progress, usage, files and faulty lines, and the button that cancels it.
import { Group, List, Stack } from "@mantine/core";
import { call } from "../../api/client.ts";
import type { Batch } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { atSecond, count } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { BatchProgress, BatchState, isOpen } from "./batch-state.tsx";

export function BatchView({ batch }: { batch: Batch }) {
  const { id, usage, errors } = batch;
  const cancel = useQuestion(() => call<Batch>("POST", `/v1/batches/${encodeURIComponent(id)}/cancel`), {
    stale: ["/v1/batches"],
    said: () => "The batch is cancelled.",
  });
  return (
    <Stack gap="lg">
      <Group gap="md">
        <BatchState batch={batch} />
        {isOpen(batch) && <PlainButton onClick={() => cancel.ask()}>Cancel the batch</PlainButton>}
      </Group>
      <BatchProgress batch={batch} />
      <Facts
        facts={[
          ["Endpoint", batch.endpoint],
          ["Model", batch.model ?? "Several or not yet known"],
          ["Created", atSecond(batch.created_at)],
          ["Expires", atSecond(batch.expires_at)],
          ["Prompt tokens", count(usage.input_tokens)],
          ["Completion tokens", count(usage.output_tokens)],
          ["Input file", batch.input_file_id],
          ["Output file", batch.output_file_id ?? "None yet"],
          ["Error file", batch.error_file_id ?? "None"],
        ]}
      />
      {errors && (
        <DrawerPart title="Errors">
          <List size="sm" spacing="xs">
            {errors.data.map(({ line, message }) => (
              <List.Item key={`${String(line)} ${message}`}>
                {line === null ? "" : `Line ${count(line)}: `}
                {message}
              </List.Item>
            ))}
          </List>
        </DrawerPart>
      )}
      <Note>Batch requests use spare capacity. Read the files through the API: GET /v1/files/…/content.</Note>
      <Confirm {...cancel.dialog} title="Cancel the batch?" action="Cancel batch" stay="Keep running">
        Completed answers stay in the output file. Running requests are stopped and not charged.
      </Confirm>
    </Stack>
  );
}
