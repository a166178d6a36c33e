// A moment in a log: to the second, with its date unless that is today.
import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { atSecond, day } from "./figures.ts";
import { timeFormat } from "./formats.ts";

const time = timeFormat({ timeStyle: "medium" });
const dayOfThisYear = timeFormat({ month: "short", day: "numeric" });

interface MomentProps {
  /** Unix. */
  seconds: number;
  /** Where the date stands beside it. */
  only?: "time";
}

export function Moment({ seconds, only }: MomentProps) {
  return (
    <time className="numeric" dateTime={new Date(seconds * 1000).toISOString()} title={atSecond(seconds)}>
      {only === "time" ? time().format(seconds * 1000) : momentText(seconds)}
    </time>
  );
}

/** Time and date below each other, for a narrow column. `href`: where the time leads. */
export function MomentLines({ seconds, href }: { seconds: number; href?: string }) {
  const time = <Moment seconds={seconds} only="time" />;
  return (
    <>
      {href === undefined ? (
        <div className="cell-line">{time}</div>
      ) : (
        <Anchor component={Link} href={href} size="sm" fw={500}>
          {time}
        </Anchor>
      )}
      {!isToday(seconds) && <div className="cell-note">{shortDay(seconds)}</div>}
    </>
  );
}

export function momentText(seconds: number): string {
  const text = time().format(seconds * 1000);
  return isToday(seconds) ? text : `${shortDay(seconds)}, ${text}`;
}

function isToday(seconds: number): boolean {
  return new Date(seconds * 1000).toDateString() === new Date().toDateString();
}

/** Without the year, where it is this one. */
function shortDay(seconds: number): string {
  const date = new Date(seconds * 1000);
  return date.getFullYear() === new Date().getFullYear() ? dayOfThisYear().format(date) : day(seconds);
}
