// Shows the first items of a list and more on request, so that only requested items are rendered.
import { Stack } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { count } from "../words/figures.ts";
import { SmallButton } from "./buttons.tsx";

/** The number of items shown at first and added with each step. */
const step = 25;

interface SomeProps<Item> {
  items: readonly Item[];
  /** The name of the list for screen readers. */
  label: string;
  keyOf(item: Item): string;
  children(item: Item): ReactNode;
}

export function Some<Item>({ items, label, keyOf, children }: SomeProps<Item>) {
  const [most, setMost] = useState(step);
  const rest = items.length - most;
  return (
    <Stack gap="sm" align="start">
      <Stack component="ul" gap="sm" m={0} p={0} w="100%" style={{ listStyle: "none" }} aria-label={label}>
        {items.slice(0, most).map((item) => (
          <li key={keyOf(item)}>{children(item)}</li>
        ))}
      </Stack>
      {rest > 0 && <SmallButton onClick={() => setMost(most + step)}>Show more, {count(rest)} are left</SmallButton>}
    </Stack>
  );
}
