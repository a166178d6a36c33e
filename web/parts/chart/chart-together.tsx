// Synchronizes the charts of a page: the chosen time is shown in all of them.
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";

interface Reading {
  /** The chosen time in Unix seconds; undefined if none. */
  time: number | undefined;
  read(time: number | undefined): void;
  /** The chart in which the user chooses; only this chart shows values beside the pointer. */
  reader: string | undefined;
  setReader(id: string | undefined): void;
}

const Context = createContext<Reading | undefined>(undefined);

export function ChartsTogether({ children }: { children: ReactNode }) {
  const value = useNewReading();
  return <Context.Provider value={value}>{children}</Context.Provider>;
}

function useNewReading(): Reading {
  const [time, read] = useState<number>();
  const [reader, setReader] = useState<string>();
  return useMemo(() => ({ time, read, reader, setReader }), [time, reader]);
}

/** Returns the shared state of the page's charts, or a chart's own state outside such a group. */
export function useReading(): Reading {
  const own = useNewReading();
  return useContext(Context) ?? own;
}
