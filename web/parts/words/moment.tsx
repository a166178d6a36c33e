// A timestamp of a log: to the second, with the date unless it is today.
import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { atSecond, day } from "./figures.ts";
import { timeFormat } from "./formats.ts";

const time = timeFormat({ timeStyle: "medium" });
const dayOfThisYear = timeFormat({ month: "short", day: "numeric" });

interface MomentProps {
  /** The moment in Unix seconds. */
  seconds: number;
  /** Set to `time` if the date is shown elsewhere. */
  only?: "time";
}

export function Moment({ seconds, only }: MomentProps) {
  return (
    <time className="numeric" dateTime={new Date(seconds * 1000).toISOString()} title={atSecond(seconds)}>
      {only === "time" ? time().format(seconds * 1000) : momentText(seconds)}
    </time>
  );
}

/** Time and date on two lines, for a narrow column. `href` is the target of the time's link. */
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

/** Formats the date, without the year if it is the current one. */
function shortDay(seconds: number): string {
  const date = new Date(seconds * 1000);
  return date.getFullYear() === new Date().getFullYear() ? dayOfThisYear().format(date) : day(seconds);
}
