// A placeholder while a page or list is loading.
import { Skeleton, Stack } from "@mantine/core";

/** `heights` are those of the placeholder's parts, in pixels, from the top. */
export function Waiting({ heights, gap = "md" }: { heights: readonly number[]; gap?: "xs" | "md" }) {
  return (
    <Stack gap={gap} aria-busy="true">
      {heights.map((height, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they do not change
        <Skeleton key={index} height={height} />
      ))}
    </Stack>
  );
}
