// Running pulls with their progress, and failed pulls, which can be resumed.
import { Group, Progress, Stack, Text } from "@mantine/core";
import { call } from "../../api/client.ts";
import type { PulledModelList } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Section } from "../../parts/page/section.tsx";
import { bytes, percent } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { filesPath } from "./file-words.ts";

type Pull = PulledModelList["pulls"][number];

export function Pulls({ pulls }: { pulls: readonly Pull[] }) {
  return (
    <Section title="Downloads">
      <Stack component="ul" gap="md" className="model-places">
        {pulls.map((pull) => (
          <PullRow key={pull.id} pull={pull} />
        ))}
      </Stack>
    </Section>
  );
}

function PullRow({ pull: { id, source, bytes: done, total_bytes: total, failure } }: { pull: Pull }) {
  const stop = useNotifiedChange(() => call("DELETE", `${filesPath}/${encodeURIComponent(id)}`), {
    stale: [filesPath],
    said: () => `The download of ${id} was stopped and deleted.`,
  });
  const again = useNotifiedChange(() => call("POST", filesPath, { body: { source, name: id } }), {
    stale: [filesPath],
    said: () => `${id} is being pulled again.`,
  });
  const part = total === 0 ? 0 : done / total;
  return (
    <li>
      <Group justify="space-between" gap="xs" mb={6}>
        <div style={{ overflowWrap: "anywhere", minWidth: 0 }}>
          <Text size="sm" fw={500}>
            {id}
          </Text>
          <SmallNote>
            {bytes(done)} of {bytes(total)}, {percent(part)}, from {source}
          </SmallNote>
        </div>
        <Group gap="xs">
          {failure !== null && (
            <SmallButton loading={again.isPending} onClick={() => again.mutate()}>
              Continue
            </SmallButton>
          )}
          <SmallButton loading={stop.isPending} onClick={() => stop.mutate()} aria-label={`Stop and delete ${id}`}>
            Stop and delete
          </SmallButton>
        </Group>
      </Group>
      <Progress value={100 * part} aria-label={`Download of ${id}`} {...(failure === null ? {} : { color: "red" })} />
      {failure !== null && (
        <Text size="sm" c="var(--mantine-color-error)" mt={6} role="alert">
          {failure}
        </Text>
      )}
    </li>
  );
}
