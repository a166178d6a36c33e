// Charts of one page that show the same time: where one is read, the others are read with it.
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";

interface Reading {
  /** Unix seconds of what is read; undefined: nothing. */
  time: number | undefined;
  read(time: number | undefined): void;
  /** The one that is being read, which alone shows its figures beside the pointer. */
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

/** Shared with the other charts where there are others; its own otherwise. */
export function useReading(): Reading {
  const own = useNewReading();
  return useContext(Context) ?? own;
}
