// The models that were pulled to this server, for operators: what each takes of the disk, and how it goes.
import { Group, Stack, Text } from "@mantine/core";
import { TrashIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { PulledModel, PulledModelList } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { at, bytes, counted } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { staleWithModels } from "./managed-models.ts";

const path = "/v1/admin/pulled-models";

export function PulledModels() {
  const read = useRead<PulledModelList>(path);
  const removal = useQuestion(({ id }: PulledModel) => call("DELETE", `${path}/${encodeURIComponent(id)}`), {
    stale: [path, ...staleWithModels],
    said: (_answer, { id }) => `${id} is deleted.`,
  });
  const models = read.data?.data ?? [];
  if (read.error && !read.data) {
    return (
      <Section title="Pulled models">
        <Failure error={read.error} retry={read.refetch} />
      </Section>
    );
  }
  if (models.length === 0) return null;
  const all = models.reduce((sum, model) => sum + model.bytes, 0);
  return (
    <Section
      title="Pulled models"
      about={`Files of the built-in engine on this server's disk: ${counted(models.length, "model")}, ${bytes(all)} in all. headrace pull fetches more.`}
    >
      <Stack component="ul" gap="xs" className="model-places">
        {models.map((model) => (
          <Group component="li" key={model.id} justify="space-between" gap="xs">
            <div style={{ overflowWrap: "anywhere", minWidth: 0 }}>
              <Text size="sm" fw={500}>
                {model.id}
              </Text>
              <SmallNote className="numeric">
                {bytes(model.bytes)}
                {model.state === "incomplete" ? ", incomplete: not served" : ""}
                {model.pulled_at === null ? "" : `, pulled ${at(model.pulled_at)}`}
                {model.source === null ? "" : `, from ${model.source}`}
              </SmallNote>
            </div>
            <SmallButton
              c="var(--mantine-color-error)"
              leftSection={<TrashIcon />}
              aria-label={`Delete ${model.id}`}
              onClick={() => removal.ask(model)}
            >
              Delete
            </SmallButton>
          </Group>
        ))}
      </Stack>
      <Confirm {...removal.dialog} title={`Delete ${removal.about?.id}?`} action="Delete the files">
        {removal.about && bytes(removal.about.bytes)} of the disk become free. It can no longer be called, unless an
        upstream has it too; what works with it now ends as usual. headrace pull fetches it again.
      </Confirm>
    </Section>
  );
}
