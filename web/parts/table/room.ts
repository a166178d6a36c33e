// Returns the width class of the space that a page has beside the menu, for tables that adapt.
import { useMediaQuery } from "@mantine/hooks";

/** `narrow` is a phone; `middle` is a tablet, or a small window with the menu open. */
export type Room = "narrow" | "middle" | "wide";

export function useRoom(): Room {
  const isNarrow = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });
  const isMiddle = useMediaQuery("(max-width: 75em)", false, { getInitialValueInEffect: false });
  if (isNarrow) return "narrow";
  return isMiddle ? "middle" : "wide";
}
