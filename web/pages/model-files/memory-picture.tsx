// A chart of the memory: the use of each model, other use and free memory; and the same as text.
import { Group, Stack, Text } from "@mantine/core";
import { BarSwatch, StackedBar } from "../../parts/chart/stacked-bar.tsx";
import { bytes, counted } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import type { Memory } from "./file-words.ts";

export function MemoryPicture({ memory }: { memory: Memory }) {
  const { total_bytes: total, free_bytes: free, held } = memory;
  const ofModels = held.reduce((sum, one) => sum + one.bytes, 0);
  const others = Math.max(0, total - free - ofModels);
  return (
    <Stack gap="sm">
      <StackedBar
        label={`Models use ${bytes(ofModels)}, other programs use ${bytes(others)}, and ${bytes(free)} of ${bytes(total)} are free.`}
        parts={held.map(({ id, bytes: size }, color) => ({ name: id, size, color }))}
        others={others}
        // The models' use is estimated, so models and free memory together may exceed the total.
        whole={Math.max(total, ofModels + free)}
      />
      <Group component="ul" gap="md" className="memory-words">
        {held.map((one, index) => (
          <Group component="li" key={one.id} gap={6} wrap="nowrap" align="start">
            <BarSwatch color={index} />
            <div>
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {one.id}
              </Text>
              <SmallNote className="numeric">
                {bytes(one.bytes)}, {stateWords(one)}
              </SmallNote>
            </div>
          </Group>
        ))}
        <Part name="Everything else" size={others} look="stacked-bar-others" />
        <Part name="Free" size={free} look="stacked-bar-free" />
      </Group>
    </Stack>
  );
}

function Part({ name, size, look }: { name: string; size: number; look: string }) {
  return (
    <Group component="li" gap={6} wrap="nowrap" align="start">
      <span className={`chart-swatch ${look}`} aria-hidden="true" />
      <div>
        <Text size="sm">{name}</Text>
        <SmallNote className="numeric">{bytes(size)}</SmallNote>
      </div>
    </Group>
  );
}

function stateWords({ state, in_use: inUse, pinned }: Memory["held"][number]): string {
  if (state !== "loaded") return state === "failed" ? "failed to load" : state;
  if (inUse > 0) return counted(inUse, "request");
  return pinned ? "idle, pinned" : "idle";
}
