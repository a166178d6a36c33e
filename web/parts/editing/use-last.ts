// Keeps a dialog's subject while the dialog closes.
import { useState } from "react";

/** Returns the value, or the previous value if there is none now. */
export function useLast<Value extends string | object>(value: Value | null | undefined): Value | undefined {
  const [last, setLast] = useState(value ?? undefined);
  if (value !== null && value !== undefined && value !== last) setLast(value);
  return value ?? last;
}
