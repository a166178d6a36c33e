// Buttons beside the one that a page or dialog is about, and the one that adds to a list.
import { Button, type ButtonProps } from "@mantine/core";
import { PlusIcon } from "@primer/octicons-react";
import type { ComponentProps } from "react";
import type { Listing } from "../../api/queries.ts";

interface Props extends ButtonProps, Omit<ComponentProps<"button">, keyof ButtonProps> {}

export function PlainButton(props: Props) {
  return <Button variant="default" {...props} />;
}

/** Reads the next page of a list, where there is one. */
export function ShowMore<Item>({ listing }: { listing: Listing<Item> }) {
  if (!listing.hasNextPage) return null;
  return (
    <PlainButton onClick={() => void listing.fetchNextPage()} loading={listing.isFetchingNextPage}>
      Show more
    </PlainButton>
  );
}

/** For a row of a list and the like. */
export function SmallButton(props: Props) {
  return <Button variant="default" size="xs" {...props} />;
}

export function AddButton(props: Props) {
  return <Button leftSection={<PlusIcon />} {...props} />;
}
