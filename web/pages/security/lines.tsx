// A list of what one signs in with or is signed in at: an icon, what it is, and what may be done about it.
import { Divider, Stack, Text } from "@mantine/core";
import { Fragment, type ReactNode } from "react";

interface LinesProps<Item> {
  items: readonly Item[];
  /** One of them, without the element of the list. */
  children(item: Item): ReactNode;
}

export function Lines<Item extends { id: string }>({ items, children }: LinesProps<Item>) {
  return (
    <Stack component="ul" gap="sm" m={0} p={0} style={{ listStyle: "none" }}>
      {items.map((item, index) => (
        <Fragment key={item.id}>
          {index > 0 && <Divider component="li" aria-hidden />}
          <li>{children(item)}</li>
        </Fragment>
      ))}
    </Stack>
  );
}

interface PicturedProps {
  icon: ReactNode;
  children: ReactNode;
}

export function Pictured({ icon, children }: PicturedProps) {
  return (
    <>
      <Text c="dimmed" component="span" aria-hidden>
        {icon}
      </Text>
      <div>{children}</div>
    </>
  );
}
