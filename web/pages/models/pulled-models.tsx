// The models that were pulled to this server, for operators: what each takes of the disk, and how it goes.
import { Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { TrashIcon } from "@primer/octicons-react";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange, useRead } from "../../api/queries.ts";
import type { PulledModel, PulledModelList } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useLast } from "../../parts/editing/use-last.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { at, bytes, count } from "../../parts/words/figures.ts";
import { staleWithModels } from "./managed-models.ts";

const path = "/v1/admin/pulled-models";

export function PulledModels() {
  const read = useRead<PulledModelList>(path);
  const [asked, setAsked] = useState<PulledModel>();
  const shown = useLast(asked);
  const remove = useChange((id: string) => call("DELETE", `${path}/${encodeURIComponent(id)}`), {
    stale: [path, ...staleWithModels],
    done(_answer, id) {
      setAsked(undefined);
      notifications.show({ message: `${id} is deleted.` });
    },
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
      about={`Files of the built-in engine on this server's disk: ${count(models.length)} ${models.length === 1 ? "model" : "models"}, ${bytes(all)} in all. headrace pull fetches more.`}
    >
      <Stack component="ul" gap="xs" className="model-places">
        {models.map((model) => (
          <Group component="li" key={model.id} justify="space-between" gap="xs">
            <div style={{ overflowWrap: "anywhere", minWidth: 0 }}>
              <Text size="sm" fw={500}>
                {model.id}
              </Text>
              <Text size="xs" c="dimmed" className="numeric">
                {bytes(model.bytes)}
                {model.state === "incomplete" ? ", incomplete: not served" : ""}
                {model.pulled_at === null ? "" : `, pulled ${at(model.pulled_at)}`}
                {model.source === null ? "" : `, from ${model.source}`}
              </Text>
            </div>
            <Button
              variant="default"
              size="xs"
              c="var(--mantine-color-error)"
              leftSection={<TrashIcon />}
              aria-label={`Delete ${model.id}`}
              onClick={() => {
                remove.reset();
                setAsked(model);
              }}
            >
              Delete
            </Button>
          </Group>
        ))}
      </Stack>
      <Confirm
        opened={asked !== undefined}
        title={`Delete ${shown?.id}?`}
        action="Delete the files"
        busy={remove.isPending}
        error={remove.error}
        confirm={() => asked && remove.mutate(asked.id)}
        close={() => setAsked(undefined)}
      >
        {shown && bytes(shown.bytes)} of the disk become free. It can no longer be called, unless an upstream has it
        too; what works with it now ends as usual. headrace pull fetches it again.
      </Confirm>
    </Section>
  );
}
