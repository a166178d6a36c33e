// Where no record of a long list is shown: not found yet, left out by filters, or none there is.
import { Anchor, Button } from "@mantine/core";
import type { ReactNode } from "react";
import { PlainButton } from "./buttons.tsx";
import { Empty } from "./empty.tsx";
import type { Patience } from "./patience.ts";

interface NoneFoundProps {
  /** "chat", and with an s for many. */
  what: string;
  /** Where a search may wait to be told whether to go on. */
  patience?: Patience;
  /** Undefined where nothing is left out by filters. */
  showAll: (() => void) | undefined;
  /** What the filters leave, in a sentence or two. */
  filtered: ReactNode;
  /** Shown where there is no record at all. */
  children: ReactNode;
}

export function NoneFound({ what, patience, showAll, filtered, children }: NoneFoundProps) {
  if (patience?.isPaused) {
    return (
      <Empty title="Nothing found yet" action={<Button onClick={patience.goOn}>Search further back</Button>}>
        The newest {what}s do not match. There are older ones.
      </Empty>
    );
  }
  if (!showAll) return children;
  return (
    <Empty title={`No matching ${what}`} action={<PlainButton onClick={showAll}>Show all {what}s</PlainButton>}>
      {filtered}
    </Empty>
  );
}

/** A link for the line that says how far a list goes. */
export function SearchFurther({ goOn }: Pick<Patience, "goOn">) {
  return (
    <Anchor component="button" type="button" inherit underline="always" onClick={goOn}>
      Search further back
    </Anchor>
  );
}
