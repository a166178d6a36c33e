// Edits the labels of a stored chat; the new labels replace the old ones.
import { ActionIcon, Button, Group, Stack, TextInput } from "@mantine/core";
import { PlusIcon, XIcon } from "@primer/octicons-react";
import { useRef, useState } from "react";
import { call } from "../../api/client.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Note } from "../../parts/words/note.tsx";

/** The API's limits of labels. */
const maxLabels = 16;
const maxNameLength = 64;
const maxValueLength = 512;

interface Line {
  key: number;
  name: string;
  value: string;
}

interface LabelEditorProps {
  id: string;
  metadata: Readonly<Record<string, string>>;
}

export function LabelEditor({ id, metadata }: LabelEditorProps) {
  const [lines, setLines] = useState<readonly Line[]>(() =>
    Object.entries(metadata).map(([name, value], key) => ({ key, name, value })),
  );
  const nextKey = useRef(lines.length);
  const adding = useRef<HTMLButtonElement>(null);
  const wanted = lines.filter(({ name, value }) => name.trim() !== "" || value !== "");
  const labels = Object.fromEntries(wanted.map(({ name, value }) => [name.trim(), value]));
  const isChanged = JSON.stringify(labels) !== JSON.stringify(metadata);
  const problemOf = ({ key, name, value }: Line) => {
    if (name.trim() === "") return value === "" ? undefined : "Enter a name";
    return wanted.some((other) => other.key !== key && other.name.trim() === name.trim())
      ? "This name is used twice"
      : undefined;
  };
  const save = useNotifiedChange(
    () => call("POST", `/v1/chat/completions/${encodeURIComponent(id)}`, { body: { metadata: labels } }),
    {
      stale: ["/v1/chat/completions"],
      said: () => "The labels are saved.",
    },
  );
  const set = (key: number, change: Partial<Line>) =>
    setLines(lines.map((line) => (line.key === key ? { ...line, ...change } : line)));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(undefined);
      }}
    >
      <Stack gap="xs" align="start">
        {lines.length === 0 && <Note>No labels. A label has a name and a value. You can search chats by label.</Note>}
        {lines.map((line, index) => (
          <Group key={line.key} gap="xs" wrap="nowrap" align="start" w="100%">
            <TextInput
              size="xs"
              aria-label={`Name of label ${index + 1}`}
              placeholder="Name"
              value={line.name}
              maxLength={maxNameLength}
              error={problemOf(line)}
              onChange={(event) => set(line.key, { name: event.currentTarget.value })}
              style={{ flex: 1 }}
            />
            <TextInput
              size="xs"
              aria-label={`Value of label ${index + 1}`}
              placeholder="Value"
              value={line.value}
              maxLength={maxValueLength}
              onChange={(event) => set(line.key, { value: event.currentTarget.value })}
              style={{ flex: 2 }}
            />
            <ActionIcon
              {...{ size: 30, variant: "subtle", color: "gray" }}
              aria-label={`Remove label ${index + 1}`}
              onClick={() => {
                setLines(lines.filter(({ key }) => key !== line.key));
                adding.current?.focus();
              }}
            >
              <XIcon />
            </ActionIcon>
          </Group>
        ))}
        {save.error && <Failure error={save.error} />}
        <Group gap="xs">
          <SmallButton
            ref={adding}
            leftSection={<PlusIcon />}
            disabled={lines.length >= maxLabels}
            onClick={() => setLines([...lines, { key: nextKey.current++, name: "", value: "" }])}
          >
            Add a label
          </SmallButton>
          {isChanged && (
            <Button
              type="submit"
              size="xs"
              loading={save.isPending}
              disabled={lines.some((line) => problemOf(line) !== undefined)}
            >
              Save labels
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
