// A moment as people say it, with its exact time for who asks.
import { Tooltip } from "@mantine/core";
import { ago, atSecond } from "./figures.ts";

/** `seconds`: Unix; null shows `never`. */
export function Ago({ seconds, never = "never" }: { seconds: number | null; never?: string }) {
  if (seconds === null) return <>{never}</>;
  return (
    <Tooltip label={atSecond(seconds)}>
      <time dateTime={new Date(seconds * 1000).toISOString()}>{ago(seconds)}</time>
    </Tooltip>
  );
}
