// The state of an empty list: still searching, filtered out, or no records at all.
import { Anchor, Button } from "@mantine/core";
import type { ReactNode } from "react";
import { PlainButton } from "./buttons.tsx";
import { Empty } from "./empty.tsx";
import type { Patience } from "./patience.ts";

interface NoneFoundProps {
  /** The singular noun, such as "chat"; an s is added for the plural. */
  what: string;
  /** Reports whether the search has paused, and continues it; absent if the search never pauses. */
  patience?: Patience;
  /** Removes all filters; undefined if no filter is active. */
  showAll: (() => void) | undefined;
  /** A sentence or two about the records that the filters exclude. */
  filtered: ReactNode;
  /** Shown if there is no record at all. */
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

/** A link that continues a paused search. */
export function SearchFurther({ goOn }: Pick<Patience, "goOn">) {
  return (
    <Anchor component="button" type="button" inherit underline="always" onClick={goOn}>
      Search further back
    </Anchor>
  );
}
