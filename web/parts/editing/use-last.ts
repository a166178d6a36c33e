// What a dialog was about, for while it closes.
import { useState } from "react";

/** The value, or where there is none now the one before. */
export function useLast<Value extends string | object>(value: Value | null | undefined): Value | undefined {
  const [last, setLast] = useState(value ?? undefined);
  if (value !== null && value !== undefined && value !== last) setLast(value);
  return value ?? last;
}
