// How much room a page has beside the menu, for tables that show more or less of their rows.
import { useMediaQuery } from "@mantine/hooks";

/** narrow: a phone; middle: a tablet, or a small window with the menu in it. */
export type Room = "narrow" | "middle" | "wide";

export function useRoom(): Room {
  const isNarrow = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });
  const isMiddle = useMediaQuery("(max-width: 75em)", false, { getInitialValueInEffect: false });
  if (isNarrow) return "narrow";
  return isMiddle ? "middle" : "wide";
}
