// A time filter: the last hours or days, or two moments, kept in the address.
import { NativeSelect, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { nowSeconds } from "../../api/server-time.ts";
import { localText } from "./local-time.ts";

const hour = 3_600;
const day = 24 * hour;

const ranges = {
  "1h": { title: "Last hour", seconds: hour },
  "24h": { title: "Last 24 hours", seconds: day },
  "7d": { title: "Last 7 days", seconds: 7 * day },
  "30d": { title: "Last 30 days", seconds: 30 * day },
} as const;

type RangeName = keyof typeof ranges;

/** The parameters in the address: the name of a range, or Unix seconds. All empty means any time. */
interface TimeAddress {
  range: string;
  start: string;
  end: string;
}

export const anyTime: TimeAddress = { range: "", start: "", end: "" };

/** A time span in Unix seconds, from `start` inclusive to `end` exclusive. */
export interface Span {
  start?: number;
  end?: number;
}

/**
 * Returns the span of a filter. A relative range is computed in whole minutes when it is chosen. The span and the query
 * then stay the same while the page is open.
 */
export function useSpan({ range, start, end }: TimeAddress): Span {
  return useMemo(() => {
    const named = isRange(range) ? ranges[range].seconds : undefined;
    if (named !== undefined) return { start: Math.floor(nowSeconds() / 60) * 60 - named };
    const [from, until] = [secondsOf(start), secondsOf(end)];
    return { ...(from === undefined ? {} : { start: from }), ...(until === undefined ? {} : { end: until }) };
  }, [range, start, end]);
}

export function TimeRange({ value, change }: { value: TimeAddress; change(value: TimeAddress): void }) {
  const { range, start, end } = value;
  const isCustom = !isRange(range) && (range === "custom" || start !== "" || end !== "");
  const isEmptySpan = start !== "" && end !== "" && Number(start) >= Number(end);
  return (
    <>
      <NativeSelect
        label="Time"
        size="xs"
        value={isCustom ? "custom" : range}
        onChange={({ currentTarget: { value: chosen } }) =>
          change(chosen === "custom" ? { range: "custom", start: aDayAgo(), end: "" } : { ...anyTime, range: chosen })
        }
        data={[
          { value: "", label: "Any time" },
          ...Object.entries(ranges).map(([name, { title }]) => ({ value: name, label: title })),
          { value: "custom", label: "From, to" },
        ]}
      />
      {isCustom && (
        <>
          <MomentField label="From" value={start} change={(text) => change({ range: "custom", start: text, end })} />
          <MomentField
            label="Before"
            value={end}
            error={isEmptySpan ? "Must be later than From" : undefined}
            change={(text) => change({ range: "custom", start, end: text })}
          />
        </>
      )}
    </>
  );
}

interface MomentFieldProps {
  label: string;
  /** The moment in Unix seconds, as text. */
  value: string;
  error?: string | undefined;
  change(text: string): void;
}

/** Uncontrolled, because a partial date has no value and React would erase it while the user types. */
function MomentField({ label, value, error, change }: MomentFieldProps) {
  const seconds = secondsOf(value);
  return (
    <TextInput
      label={label}
      type="datetime-local"
      size="xs"
      error={error}
      defaultValue={seconds === undefined ? "" : localText(seconds)}
      onChange={({ currentTarget: { value: text } }) => {
        const moment = new Date(text).getTime() / 1000;
        change(Number.isFinite(moment) ? String(moment) : "");
      }}
    />
  );
}

function isRange(text: string): text is RangeName {
  return Object.hasOwn(ranges, text);
}

/** Returns undefined for a moment outside these centuries, which the server would refuse. */
function secondsOf(text: string): number | undefined {
  const seconds = text === "" ? Number.NaN : Number(text);
  return Number.isInteger(seconds) && seconds >= 0 && seconds < 253_402_300_800 ? seconds : undefined;
}

function aDayAgo(): string {
  return String(Math.floor(nowSeconds() / 60) * 60 - day);
}
