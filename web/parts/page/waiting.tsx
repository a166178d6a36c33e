// A placeholder while a page or list is loading.
import { Skeleton, Stack } from "@mantine/core";

/** Shows placeholders below each other. `heights` holds their heights in pixels, from the top. */
export function Waiting({ heights, gap = "md" }: { heights: readonly number[]; gap?: "xs" | "md" }) {
  return (
    <Stack gap={gap} aria-busy="true">
      {heights.map((height, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the heights do not change
        <Skeleton key={index} height={height} />
      ))}
    </Stack>
  );
}
