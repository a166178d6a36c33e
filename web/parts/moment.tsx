// A moment in a log: to the second, with its date unless that is today.
import { Stack, Text } from "@mantine/core";
import { atSecond } from "./figures.ts";

const time = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

interface MomentProps {
  /** Unix. */
  seconds: number;
  /** Where the date stands beside it. */
  only?: "time";
}

export function Moment({ seconds, only }: MomentProps) {
  return (
    <time className="numeric" dateTime={new Date(seconds * 1000).toISOString()} title={atSecond(seconds)}>
      {only === "time" ? time.format(seconds * 1000) : momentText(seconds)}
    </time>
  );
}

/** Time and date below each other, for a narrow column. */
export function MomentLines({ seconds }: { seconds: number }) {
  return (
    <Stack gap={0}>
      <Text size="sm">
        <Moment seconds={seconds} only="time" />
      </Text>
      {!isToday(seconds) && (
        <Text size="xs" c="dimmed">
          {shortDay(seconds)}
        </Text>
      )}
    </Stack>
  );
}

export function momentText(seconds: number): string {
  const text = time.format(seconds * 1000);
  return isToday(seconds) ? text : `${shortDay(seconds)}, ${text}`;
}

export function isToday(seconds: number): boolean {
  return new Date(seconds * 1000).toDateString() === new Date().toDateString();
}

/** Without the year, where it is this one. */
export function shortDay(seconds: number): string {
  const date = new Date(seconds * 1000);
  return (date.getFullYear() === new Date().getFullYear() ? day : dayOfYear).format(date);
}
