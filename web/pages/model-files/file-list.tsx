// The model files, one per row: state, memory need, fit and removal.
import { Group, Stack, Text } from "@mantine/core";
import { TrashIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import type { PulledModel } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { at, bytes, count, counted } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";
import { filesPath, fitWords, type Memory, parameterWords, shapeWords, useWords, whyFits } from "./file-words.ts";

interface FileListProps {
  files: readonly PulledModel[];
  memory: Memory;
}

export function FileList({ files, memory }: FileListProps) {
  const removal = useQuestion(
    ({ id, in_use: inUse }: PulledModel) =>
      call("DELETE", `${filesPath}/${encodeURIComponent(id)}`, { query: inUse > 0 ? { force: "true" } : {} }),
    {
      stale: [filesPath, "/v1/admin/models", "/v1/model-status", "/v1/models"],
      said: (_answer, { id }) => `${id} is deleted.`,
    },
  );
  return (
    <>
      <Stack component="ul" gap={0} className="model-places file-list">
        {files.map((file) => (
          <FileRow key={file.id} file={file} memory={memory} remove={() => removal.ask(file)} />
        ))}
      </Stack>
      <Confirm {...removal.dialog} title={`Delete ${removal.about?.id}?`} action="Delete files">
        {removal.about && bytes(removal.about.bytes)} of disk space is freed. The model can no longer be called, unless
        an upstream also serves it.{" "}
        {removal.about && removal.about.in_use > 0
          ? `${counted(removal.about.in_use, "request")} running on it now will be completed. `
          : ""}
        You can pull the model again.
      </Confirm>
    </>
  );
}

function FileRow({ file, memory, remove }: { file: PulledModel; memory: Memory; remove(): void }) {
  const { id, state, use, fit } = file;
  const [useKind, useWord] = useWords[use];
  return (
    <li className="file-row">
      <div style={{ overflowWrap: "anywhere", minWidth: 0 }}>
        <Text size="sm" fw={500}>
          {id}
        </Text>
        <SmallNote>{whatItIs(file)}</SmallNote>
        <SmallNote>{whereFrom(file)}</SmallNote>
      </div>
      <div>
        <Group gap="xs">
          {state === "incomplete" ? <State kind="warning">Incomplete</State> : <State kind={useKind}>{useWord}</State>}
          {fit && <State kind={fitWords[fit][0]}>{fitWords[fit][1]}</State>}
        </Group>
        {state === "ready" && <SmallNote mt={4}>{whyFits(file, memory)}</SmallNote>}
        {file.memory && <SmallNote>Memory is calculated for {shapeWords(file.memory)}.</SmallNote>}
        {state === "incomplete" && (
          <SmallNote mt={4}>This model is not served. Pull it again to complete the download.</SmallNote>
        )}
      </div>
      <SmallButton
        c="var(--mantine-color-error)"
        leftSection={<TrashIcon />}
        aria-label={`Delete ${id}`}
        onClick={remove}
      >
        Delete
      </SmallButton>
    </li>
  );
}

function whatItIs({
  bytes: size,
  architecture,
  parameters,
  quantization,
  context_length: context,
}: PulledModel): string {
  return [
    bytes(size),
    ...(parameters === null ? [] : [parameterWords(parameters)]),
    ...(quantization === null ? [] : [quantization]),
    ...(architecture === null ? [] : [architecture]),
    ...(context === null ? [] : [`${count(context)} tokens of context`]),
  ].join(", ");
}

function whereFrom({ source, pulled_at: pulled }: PulledModel): string {
  return [...(source === null ? [] : [source]), ...(pulled === null ? [] : [`pulled ${at(pulled)}`])].join(", ");
}
