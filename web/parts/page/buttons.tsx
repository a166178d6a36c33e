// Secondary buttons, and the button that adds to a list.
import { Button, type ButtonProps } from "@mantine/core";
import { PlusIcon } from "@primer/octicons-react";
import type { ComponentProps } from "react";
import type { Listing } from "../../api/queries.ts";

interface Props extends ButtonProps, Omit<ComponentProps<"button">, keyof ButtonProps> {}

export function PlainButton(props: Props) {
  return <Button variant="default" {...props} />;
}

/** Loads the next page of a list, if there is one. */
export function ShowMore<Item>({ listing }: { listing: Listing<Item> }) {
  if (!listing.hasNextPage) return null;
  return (
    <PlainButton onClick={() => void listing.fetchNextPage()} loading={listing.isFetchingNextPage}>
      Show more
    </PlainButton>
  );
}

/** For table rows and similar small places. */
export function SmallButton(props: Props) {
  return <Button variant="default" size="xs" {...props} />;
}

export function AddButton(props: Props) {
  return <Button leftSection={<PlusIcon />} {...props} />;
}
