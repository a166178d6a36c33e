// What stands in the place of a page or list that is being read.
import { Skeleton, Stack } from "@mantine/core";

/** `heights`: of its parts, in pixels, from above. */
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
